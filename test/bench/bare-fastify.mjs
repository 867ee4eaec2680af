/** The server of a yardstick: it takes a submit and answers at once. */
import Fastify from 'fastify';
import { serveOperations } from './operations.mjs';

serveOperations({
  listen() {
    const server = Fastify();
    server.post('/v1/runs', async (request, reply) => {
      reply.code(201);
      return { kind: request.body.kind };
    });
    return server.listen({ host: '127.0.0.1', port: 0 });
  },
});
