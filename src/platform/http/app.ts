/**
 * The HTTP edge of a process, made the same way for the server and for tests. What is decided here holds for every
 * route: bounds against slow and large requests, the request's id, headers of every answer, problems, decoding.
 */
import { Server as NetServer, type Socket } from 'node:net';
import { type DynamicModule, type Type } from '@nestjs/common';
import { NestFactory, Reflector } from '@nestjs/core';
import { FastifyAdapter, type NestFastifyApplication } from '@nestjs/platform-fastify';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { Problem } from '../../kernel/problems.js';
import type { Platform } from '../platform.js';
import { answerBrokenRequest } from './broken-request.js';
import { HttpMetrics } from './http.metrics.js';
import { InputPipe } from './input.pipe.js';
import { JsonBodyGuard } from './json-body.guard.js';
import { Doorkeeper, largerBodies } from './larger-body.js';
import { lingering } from './linger.js';
import { NestLog } from './nest-log.js';
import { ProblemFilter } from './problem.filter.js';
import { requestIdOf } from './request-id.js';
import { Routes } from './routes.js';
import { Traffic } from './traffic.js';

const MAX_BODY_BYTES = 1024 * 1024;
/** The longest name in a path is a receipt: a chain, a number and a digest. */
const MAX_PARAM_CHARS = 200;
/** A whole request must have arrived within this, its headers within half of it. */
const REQUEST_TIMEOUT_MS = 30_000;
const ORIGIN = /^https?:\/\/[^/?#]*/i;
/** Longer than a balancer keeps an idle connection (60 s is usual), so that it never sends into a closing one. */
const KEEP_ALIVE_MS = 65_000;

/** Headers of every answer; a page with content of its own sets its own policy. */
const EVERY_ANSWER = Object.freeze({
  'cache-control': 'no-store',
  'x-content-type-options': 'nosniff',
  'x-frame-options': 'DENY',
  'referrer-policy': 'no-referrer',
  'content-security-policy': "default-src 'none'; frame-ancestors 'none'",
  'cross-origin-resource-policy': 'same-origin',
});

/** The application of `module`, ready to `listen` or to be injected requests into. The caller closes it. */
export async function createApp(
  module: Type<unknown> | DynamicModule,
  platform: Platform,
): Promise<NestFastifyApplication> {
  const routes = new Routes();
  const filter = new ProblemFilter(platform.log, routes);
  const adapter = createAdapter(platform, filter, routes);
  const app = await NestFactory.create<NestFastifyApplication>(module, adapter, {
    bodyParser: false,
    abortOnError: false,
    logger: new NestLog(platform.log),
  });
  control(adapter.getInstance(), app.get(Traffic), filter);
  const doorkeeper = app.get(Doorkeeper);
  largerBodies(adapter.getInstance(), doorkeeper, (error, request, reply) => filter.answer(error, request, reply));
  filter.onForbidden((request) => doorkeeper.noteForbidden(request));
  app.useGlobalFilters(filter);
  // Behind the guards of the modules.
  app.useGlobalGuards(new JsonBodyGuard(app.get(Reflector)));
  app.useGlobalPipes(new InputPipe());
  await app.init();
  await adapter.getInstance().ready();
  return app;
}

function createAdapter(platform: Platform, filter: ProblemFilter, routes: Routes): FastifyAdapter {
  const metrics = new HttpMetrics(platform.metrics);
  const headers = Object.freeze({ ...EVERY_ANSWER, 'capstan-replica': platform.config.name });
  const prepare = (request: FastifyRequest, reply: FastifyReply): void => {
    metrics.watch(request, reply);
    void reply.headers(headers).header('x-request-id', request.id);
  };
  const adapter = new FastifyAdapter({
    logger: false,
    forceCloseConnections: 'idle',
    // A request that was sent before its sender could know is answered like any other.
    return503OnClosing: false,
    bodyLimit: MAX_BODY_BYTES,
    routerOptions: { maxParamLength: MAX_PARAM_CHARS },
    requestTimeout: REQUEST_TIMEOUT_MS,
    keepAliveTimeout: KEEP_ALIVE_MS,
    // A request without a host is refused like any other: Node's own 400 would have no problem and no id.
    http: { headersTimeout: REQUEST_TIMEOUT_MS / 2, connectionsCheckingInterval: 5_000, requireHostHeader: false },
    rewriteUrl: ({ url = '/' }) => pathOf(url),
    requestIdHeader: false,
    genReqId: (raw: { headers: Record<string, string | string[] | undefined> }) =>
      requestIdOf(raw.headers['x-request-id']),
    clientErrorHandler: (error, socket) => answerBrokenRequest(error, socket, platform.config.name),
    // The router refuses a path before any hook has run.
    frameworkErrors: (error: unknown, request: FastifyRequest, reply: FastifyReply) => {
      prepare(request, reply);
      filter.answer(error, request, reply);
    },
  });
  const instance = adapter.getInstance();
  routes.watch(instance);
  instance.addHook('onRequest', (request, reply, done) => {
    prepare(request, reply);
    done();
  });
  // Bytes are only collected, up to the limit: what they are is decided behind the guard.
  instance.removeAllContentTypeParsers();
  instance.addContentTypeParser('*', { parseAs: 'buffer' }, (_request, body, done) => done(null, body));
  return adapter;
}

/** Of a whole URL the path counts. `*` and its like, which are no path, would get past every hook. */
function pathOf(target: string): string {
  if (target.startsWith('/')) return target;
  const path = target.replace(ORIGIN, '');
  return path.startsWith('/') ? path : `/${path}`;
}

/** What is wrong with a request's head that neither Node nor the router looks at. */
function headProblem({ raw, url }: FastifyRequest): Problem | undefined {
  if (raw.headers.host === undefined && raw.httpVersion === '1.1') {
    return new Problem('malformed_request', 'the request names no host');
  }
  const query = url.indexOf('?');
  if (query < 0) return undefined;
  try {
    decodeURIComponent(url.slice(query + 1));
    return undefined;
  } catch {
    return new Problem('malformed_request', 'the query has a bad percent encoding');
  }
}

/** Lets requests in or not, and closes connections without breaking off what is being answered. */
function control(instance: FastifyInstance, traffic: Traffic, filter: ProblemFilter): void {
  const { server } = instance;
  server.on('connection', (connection: Socket) => traffic.expect(connection));
  // What else than `100-continue` a caller expects is not heeded: Node's own 417 would have no problem and no id.
  server.on('checkExpectation', (request, answer) => server.emit('request', request, answer));
  instance.addHook('onRequest', (request, reply, done) => {
    const problem = traffic.enter(request.routeOptions.url, reply.raw) ?? headProblem(request);
    if (problem) filter.answer(problem, request, reply);
    else done();
  });
  instance.addHook('onSend', (request, reply, payload, done) => {
    // Who keeps connections must not send into one that is about to be closed.
    if (traffic.phase === 'stopping') void reply.header('connection', 'close');
    done(null, lingering(request, reply, payload));
  });
  instance.addHook('preClose', (done) => {
    if (!server.listening) return done();
    // Right after all who had knocked were let in: the system resets those who stand before a door that is closed.
    setImmediate(() => {
      // Not the server's own way, which would also end connections whose first request is on its way.
      NetServer.prototype.close.call(server);
      server.once('close', traffic.wane(server, done));
    });
  });
}
