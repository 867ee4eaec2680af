/**
 * `/docs`: the OpenAPI document for a person to read and to try, all of it from local files. Its address is the origin
 * that it talks to, so a token given to it goes nowhere else.
 */
import { Controller, Get, Header, Param, Query, Res } from '@nestjs/common';
import type { FastifyReply } from 'fastify';
import { Problem } from '../../kernel/problems.js';
import { DOCS_ASSETS, DOCS_PAGE, DOCS_VERSION } from './docs.js';
import { Documented } from './document.js';
import { Open } from './permission.js';

/** Scripts come from files alone; pictures of the style sheet stand in it. */
const POLICY =
  "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; " +
  "base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

@Documented((api) => api.ApiExcludeController())
@Controller('docs')
export class DocsController {
  @Open()
  @Get()
  @Header('content-type', 'text/html; charset=utf-8')
  @Header('content-security-policy', POLICY)
  page(): string {
    return DOCS_PAGE;
  }

  @Open()
  @Get(':asset')
  async asset(@Param('asset') name: string, @Query('v') version: unknown, @Res() reply: FastifyReply): Promise<void> {
    const asset = DOCS_ASSETS.get(name);
    if (!asset) throw new Problem('not_found', 'there is no such file');
    const bytes = await asset.read();
    // What stands behind a name and its version never changes; the page of another replica may name another version.
    const caching = version === DOCS_VERSION ? 'public, max-age=31536000, immutable' : 'no-cache';
    await reply.header('content-type', asset.type).header('cache-control', caching).send(bytes);
  }
}
