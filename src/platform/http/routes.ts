/** The routes an application has, as Fastify registered them: what a 405 and its `Allow` are told from. */
import type { FastifyInstance } from 'fastify';

export class Routes {
  private readonly known: { readonly segments: readonly string[]; readonly methods: readonly string[] }[] = [];

  /** Must be called before the first route is registered. */
  watch(instance: FastifyInstance): void {
    instance.addHook('onRoute', ({ url, method }) => {
      const methods = Array.isArray(method) ? method : [method];
      this.known.push({ segments: url.split('/'), methods });
    });
  }

  /** The methods that a path answers to, in alphabetical order; empty when there is no such path. */
  methodsAt(path: string): string[] {
    const segments = path.split('/');
    const here = this.known.filter((route) => isMatch(route.segments, segments));
    return [...new Set(here.flatMap((route) => route.methods))].sort();
  }
}

function isMatch(pattern: readonly string[], segments: readonly string[]): boolean {
  if (pattern.length !== segments.length) return false;
  return pattern.every((part, i) => (part.startsWith(':') ? segments[i] !== '' : part === segments[i]));
}
