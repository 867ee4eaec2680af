/** `GET /v1/version`: what runs here. */
import { Controller, Get, Query } from '@nestjs/common';
import { knownMigrations } from '../db/migrate.js';
import { Documented } from './document.js';
import { NoQuery } from './input.pipe.js';
import { productVersion } from './product.js';
import { nullable } from './schema.js';
import { ThisReplica } from './this-replica.js';

class ReplicaDto {
  @Documented((api) => api.ApiProperty({ type: String, example: 'r1', description: 'Its stable name.' }))
  name: string;

  @Documented((api) =>
    api.ApiProperty(
      nullable('string', {
        example: 'wrk_01h455vb4pex5vsknk084sn02q',
        description: 'The worker that it is right now.',
      }),
    ),
  )
  id: string | null;
}

export class VersionDto {
  @Documented((api) => api.ApiProperty({ type: String, example: 'capstan' }))
  name: string;

  @Documented((api) => api.ApiProperty({ type: String, example: '0.1.0' }))
  version: string;

  @Documented((api) =>
    api.ApiProperty({
      type: String,
      example: '0007_lists',
      description: 'The newest migration that this build knows.',
    }),
  )
  schema: string;

  @Documented((api) => api.ApiProperty({ type: String, example: '20.19.2', description: 'Version of Node.js.' }))
  node: string;

  @Documented((api) => api.ApiProperty({ type: ReplicaDto }))
  replica: ReplicaDto;
}

@Documented((api) => api.ApiTags('installation'))
@Controller('v1/version')
export class VersionController {
  constructor(private readonly replica: ThisReplica) {}

  @Documented((api) => api.ApiOperation({ operationId: 'getVersion', summary: 'What runs here' }))
  @Documented((api) => api.ApiOkResponse({ type: VersionDto, description: 'Product, schema and replica.' }))
  @Get()
  async show(@Query() _query: NoQuery): Promise<VersionDto> {
    return {
      name: 'capstan',
      version: productVersion(),
      schema: (await knownMigrations()).at(-1) ?? '',
      node: process.versions.node,
      replica: { name: this.replica.name, id: this.replica.workerId },
    };
  }
}
