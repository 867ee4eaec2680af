/** Nest's own log lines go where all others go. It reports each mapped route: that is for debugging. */
import type { LoggerService } from '@nestjs/common';
import type { Logger } from '../log/logger.js';

export class NestLog implements LoggerService {
  constructor(private readonly logger: Logger) {}

  log(message: unknown, context?: unknown): void {
    this.logger.debug({ code: 'nest', context }, String(message));
  }

  debug(message: unknown, context?: unknown): void {
    this.logger.trace({ code: 'nest', context }, String(message));
  }

  verbose(message: unknown, context?: unknown): void {
    this.logger.trace({ code: 'nest', context }, String(message));
  }

  warn(message: unknown, context?: unknown): void {
    this.logger.warn({ code: 'nest', context }, String(message));
  }

  error(message: unknown, ...rest: unknown[]): void {
    const err = message instanceof Error ? { err: message } : {};
    this.logger.error({ code: 'nest', ...err, context: rest.at(-1) }, String(message));
  }
}
