/** Why a run isn't taken, as the API shows it. */
import { RUN_STATES } from '../kernel/run-words.js';
import { Documented } from '../platform/http/document.js';
import { nullable } from '../platform/http/schema.js';
import { TOLD_QUEUES, TOLD_RUNS, TOLD_WORKERS, WHY_CODES } from './why.js';

class WhyWorkerDto {
  @Documented((api) => api.ApiProperty({ type: String, example: 'wrk_01h455vb4pex5vsknk084sn02q' }))
  id: string;

  @Documented((api) => api.ApiProperty({ type: String, example: 'r1' }))
  name: string;

  @Documented((api) => api.ApiProperty({ type: 'integer', required: false }))
  slots?: number;

  @Documented((api) =>
    api.ApiProperty({ type: 'integer', required: false, description: 'Runs that it holds, of all organizations.' }),
  )
  held?: number;

  @Documented((api) =>
    api.ApiProperty({
      type: [String],
      required: false,
      description: `Which of them are the caller's, the longest held first, at most ${TOLD_RUNS}.`,
      example: ['run_01h455vb4pex5vsknk084sn02q'],
    }),
  )
  runs?: readonly string[];
}

class WhyReasonDto {
  @Documented((api) =>
    api.ApiProperty({
      type: String,
      example: 'queue_paused',
      enum: WHY_CODES,
      description:
        'What stands between the run and the next claim. `not_pending`: it has ended, was taken, or is held or ' +
        'parked. `cancel_requested`: whoever has it stops it. `not_before`: it is not due. `queue_paused`. ' +
        '`no_worker`: no worker that has slots is connected; `not_served`: none of them serves the queue; ' +
        '`workers_draining`: those that do are draining; `slots_busy`: the others have no free slot. ' +
        '`others_first`: more runs than there are free slots go before it.',
    }),
  )
  code: string;

  @Documented((api) =>
    api.ApiProperty({
      type: String,
      example: 'queue default is paused: the database is moving',
      description: 'For a person.',
    }),
  )
  detail: string;

  @Documented((api) =>
    api.ApiProperty({
      type: String,
      example: 'an admin of the installation resumes it',
      description: 'What would change it, for a person.',
    }),
  )
  remedy: string;

  @Documented((api) =>
    api.ApiProperty(nullable('string', { format: 'date-time', description: 'When it ends by itself, where known.' })),
  )
  until: Date | null;

  @Documented((api) =>
    api.ApiProperty({
      type: [WhyWorkerDto],
      required: false,
      description: `Of \`slots_busy\` and \`workers_draining\`: who, at most ${TOLD_WORKERS}.`,
    }),
  )
  workers?: readonly WhyWorkerDto[];

  @Documented((api) =>
    api.ApiProperty({
      type: [String],
      required: false,
      description: `Of \`not_served\`: what connected workers serve, at most ${TOLD_QUEUES}.`,
    }),
  )
  queues?: readonly string[];

  @Documented((api) =>
    api.ApiProperty({
      type: 'integer',
      required: false,
      description: 'Of `others_first`: how many, of all organizations.',
    }),
  )
  ahead?: number;

  @Documented((api) =>
    api.ApiProperty({ type: Boolean, required: false, description: 'No more than `ahead` were counted.' }),
  )
  isAtLeast?: boolean;
}

export class WhyDto {
  @Documented((api) => api.ApiProperty({ type: String, example: 'run_01h455vb4pex5vsknk084sn02q' }))
  id: string;

  @Documented((api) => api.ApiProperty({ type: String, example: 'pending', enum: RUN_STATES }))
  state: string;

  @Documented((api) => api.ApiProperty({ type: String, example: 'default' }))
  queue: string;

  @Documented((api) =>
    api.ApiProperty({ type: Boolean, description: 'The next claim takes it: exactly when there are no reasons.' }),
  )
  isClaimable: boolean;

  @Documented((api) => api.ApiProperty({ type: [WhyReasonDto] }))
  reasons: readonly WhyReasonDto[];
}
