/** The wire shape of a chain's verification. */
import { Documented } from '../platform/http/document.js';

class ChainHeadDto {
  @Documented((api) => api.ApiProperty({ type: 'integer', minimum: 0 }))
  seq: number;

  @Documented((api) => api.ApiProperty({ type: String, description: 'Lower-case hex; empty before the first entry.' }))
  link: string;
}

export class VerificationDto {
  @Documented((api) => api.ApiProperty({ type: Boolean, description: 'Whether every entry and the head hold.' }))
  ok: boolean;

  @Documented((api) => api.ApiProperty({ type: String, description: 'Id of the chain.' }))
  chain: string;

  @Documented((api) => api.ApiProperty({ type: 'integer', description: 'Entries that were recomputed and held.' }))
  entries: number;

  @Documented((api) => api.ApiProperty({ type: ChainHeadDto }))
  head: ChainHeadDto;

  @Documented((api) => api.ApiProperty({ type: 'integer', description: 'Outside timestamps of the chain.' }))
  anchors: number;

  @Documented((api) =>
    api.ApiProperty({ type: 'integer', required: false, description: 'Sequence number of the first that fails.' }),
  )
  brokenAt?: number;

  @Documented((api) =>
    api.ApiProperty({ type: String, required: false, enum: ['gap', 'prev', 'link', 'head', 'behind'] }),
  )
  check?: string;

  @Documented((api) => api.ApiProperty({ type: 'integer', description: 'Milliseconds that it took.' }))
  tookMs: number;
}
