# One image for `serve`, `worker` and `migrate` on a PostgreSQL of yours; the bundled one is not in it.
# Tools that runs need (Ansible, Terraform, Python) go into an image of yours that begins with this one.

FROM node:24-bookworm-slim AS build
WORKDIR /app
COPY package.json package-lock.json ./
RUN npm ci --no-audit --no-fund
COPY . .
RUN npm run build && npm prune --omit=dev --omit=optional --no-audit --no-fund

FROM node:24-bookworm-slim
LABEL org.opencontainers.image.title="Capstan" \
      org.opencontainers.image.description="Active-active control plane that runs automation on identical replicas over one PostgreSQL" \
      org.opencontainers.image.licenses="Apache-2.0"
# tini collects the processes that tools leave behind; util-linux has setpriv, which ends a tool with its supervisor.
RUN apt-get update \
 && apt-get install -y --no-install-recommends tini util-linux \
 && rm -rf /var/lib/apt/lists/*
WORKDIR /app
COPY --from=build /app/package.json /app/LICENSE ./
COPY --from=build /app/node_modules ./node_modules
COPY --from=build /app/migrations ./migrations
COPY --from=build /app/src/openapi.json ./src/openapi.json
COPY --from=build /app/dist ./dist

ENV NODE_ENV=production \
    CAPSTAN_HOST=0.0.0.0
# The user `node`, by number: Kubernetes can't tell of a name that it isn't root. It may write to /tmp alone, where tools run.
USER 1000:1000
EXPOSE 8080
# Give a stop at least CAPSTAN_DRAIN_TIMEOUT + CAPSTAN_KILL_GRACE + 5 s: docker stop --time 45.
STOPSIGNAL SIGTERM
ENTRYPOINT ["tini", "--", "node", "/app/dist/main.js"]
CMD ["serve"]
