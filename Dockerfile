# One image for `serve`, `worker` and `migrate`. The bundled PostgreSQL is in it, so that it also runs alone.

FROM node:24-bookworm-slim AS build
WORKDIR /app
COPY package.json package-lock.json ./
RUN npm ci --no-audit --no-fund
COPY . .
RUN npm run build && npm prune --omit=dev --no-audit --no-fund

FROM node:24-bookworm-slim
# tini collects the processes that tools leave behind; util-linux has setpriv, which ends a tool with its supervisor.
RUN apt-get update \
 && apt-get install -y --no-install-recommends tini util-linux \
 && rm -rf /var/lib/apt/lists/* \
 && install -d -o node -g node -m 0700 /data
WORKDIR /app
COPY --from=build /app/package.json ./
COPY --from=build /app/node_modules ./node_modules
COPY --from=build /app/migrations ./migrations
COPY --from=build /app/src/openapi.json ./src/openapi.json
COPY --from=build /app/dist ./dist

ENV NODE_ENV=production \
    CAPSTAN_HOST=0.0.0.0 \
    CAPSTAN_DATA_DIR=/data
USER node
# Not below /app, which is root's: what a tool is run in is temporary.
WORKDIR /data
VOLUME /data
EXPOSE 8080
# Give a stop at least CAPSTAN_DRAIN_TIMEOUT + CAPSTAN_KILL_GRACE + 5 s: docker stop --time 45.
STOPSIGNAL SIGTERM
HEALTHCHECK --start-period=60s CMD ["node", "-e", "fetch('http://127.0.0.1:' + (process.env.CAPSTAN_PORT || 8080) + '/healthz').then((answer) => process.exit(answer.ok ? 0 : 1), () => process.exit(1))"]
ENTRYPOINT ["tini", "--", "node", "/app/dist/main.js"]
CMD ["serve"]
