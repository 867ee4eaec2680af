/**
 * What a process answers over HTTP, by the template of the route: nothing that a caller wrote is ever a label. An answer
 * that lasts because the caller wants it to (a stream, a wait that was asked for) says nothing about how quick this
 * process is, so it is left out of the durations.
 */
import type { FastifyReply, FastifyRequest } from 'fastify';
import { Gauge, Histogram, type Registry } from 'prom-client';
import { labelOf } from '../metrics.js';

const METHODS = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS'] as const;
const NO_ROUTE = '(none)';
/** As nginx calls it: the caller went away before there was an answer. */
const GONE = 499;

export class HttpMetrics {
  private readonly seconds: Histogram<'method' | 'route' | 'status'>;
  private readonly inFlight: Gauge;

  constructor(registry: Registry) {
    const registers = [registry];
    this.seconds = new Histogram({
      name: 'capstan_http_request_duration_seconds',
      help:
        'From a request to the end of its answer, by method, template of the route ("(none)" for unknown paths) and ' +
        'status (499: the caller went away). Streams, and waits that were asked for, are not in here.',
      labelNames: ['method', 'route', 'status'],
      buckets: [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10],
      registers,
    });
    this.inFlight = new Gauge({
      name: 'capstan_http_requests_in_flight',
      help: 'Requests that are being answered, streams and waits among them.',
      registers,
    });
  }

  /** To be called once for each request, before anything of it is answered. */
  watch(request: FastifyRequest, reply: FastifyReply): void {
    const begunAtMs = performance.now();
    const { raw } = reply;
    this.inFlight.inc();
    raw.once('close', () => {
      this.inFlight.dec();
      if (isHeld(reply)) return;
      const labels = {
        method: labelOf(METHODS, request.method),
        route: request.routeOptions.url ?? NO_ROUTE,
        status: raw.headersSent ? raw.statusCode : GONE,
      };
      this.seconds.observe(labels, (performance.now() - begunAtMs) / 1_000);
    });
  }
}

/** It lasts for as long as the caller wants. */
function isHeld(reply: FastifyReply): boolean {
  if (reply.hasHeader('preference-applied')) return true;
  return String(reply.raw.getHeader('content-type')).startsWith('text/event-stream');
}
