/** The wire shapes of what balancers ask. */
import { Documented } from '../platform/http/document.js';

export class HealthDto {
  @Documented((api) => api.ApiProperty({ type: String, enum: ['ok'] }))
  status: 'ok';
}

export class ReadinessDto {
  @Documented((api) => api.ApiProperty({ type: String, enum: ['ready', 'not ready'] }))
  status: 'ready' | 'not ready';

  @Documented((api) =>
    api.ApiProperty({
      type: 'object',
      additionalProperties: { type: 'string' },
      example: { database: 'ok', migrations: 'ok', process: 'ok' },
      description: 'Each check by its name: `ok`, or what is wrong.',
    }),
  )
  checks: Readonly<Record<string, string>>;
}
