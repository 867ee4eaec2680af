/** JSON lines on standard error: a stable `code`, what failed and what happens next. An error's text is cut short. */
import { type Logger as PinoLogger, pino, stdSerializers } from 'pino';

export type Logger = PinoLogger;

const MAX_ERROR_TEXT = 2_000;

/** The logger of a process. Standard output stays free for what a person or a script asked for. */
export function createLogger(level: string): Logger {
  return pino(
    {
      level,
      base: null,
      timestamp: pino.stdTimeFunctions.isoTime,
      formatters: { level: (label) => ({ level: label }) },
      serializers: { err: errorForLog },
    },
    pino.destination({ fd: 2, sync: true }),
  );
}

function errorForLog(error: unknown): unknown {
  if (!(error instanceof Error)) return String(error).slice(0, MAX_ERROR_TEXT);
  const { type, message, stack } = stdSerializers.err(error);
  const code = 'code' in error && typeof error.code === 'string' ? { code: error.code } : {};
  return { type, ...code, message: message.slice(0, MAX_ERROR_TEXT), stack: stack?.slice(0, MAX_ERROR_TEXT) };
}
