/** What the compiled rules of a DTO accept is what class-validator accepts: no value tells the two apart. */
import { getMetadataStorage, IsArray, IsOptional, IsString, ValidateNested, validateSync } from 'class-validator';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { compileRules } from '../../../src/platform/http/compiled-rules.js';
import { BatchDto } from '../../../src/runs/batch.dto.js';
import { BulkCancelDto, BulkRerunDto } from '../../../src/runs/bulk.dto.js';
import { HttpSpec } from '../../../src/runs/http-spec.dto.js';
import { PutQueueDto } from '../../../src/runs/queue.dto.js';
import { PutRetentionDto } from '../../../src/runs/retention.dto.js';
import { RunListQuery } from '../../../src/runs/run-list.dto.js';
import { CommandSpec, NoopSpec, ScriptSpec } from '../../../src/runs/spec.dto.js';
import { SubmitDto } from '../../../src/runs/submit.dto.js';
import { HOSTILE } from '../../fuzz/hostile.js';

type Dto = new () => object;

const DTOS: readonly (readonly [string, Dto])[] = [
  SubmitDto,
  CommandSpec,
  ScriptSpec,
  HttpSpec,
  NoopSpec,
  BatchDto,
  BulkCancelDto,
  BulkRerunDto,
  PutQueueDto,
  PutRetentionDto,
  RunListQuery,
].map((type) => [type.name, type] as const);

/** What one member or another takes, at its limits and beyond. */
const FITTING = [
  'command',
  'noop',
  'http',
  'default',
  'a'.repeat(63),
  'a'.repeat(64),
  'UPPER',
  'n'.repeat(200),
  'n'.repeat(201),
  'two\nlines',
  'line\u2028separator',
  '\u{1F600}',
  -100,
  -101,
  100,
  101,
  0.5,
  '15m',
  '365d',
  '366d',
  '0s',
  '2030-01-01T00:00:00Z',
  '2030-01-01T00:00:00.000+02:00',
  'run_01h455vb4pex5vsknk084sn02q',
  '01890a5d-ac96-774b-bcce-b302099a8057',
  { team: 'ops' },
  { team: 1 },
  Object.fromEntries(Array.from({ length: 65 }, (_, i) => [`k${i}`, 'v'])),
  ['true'],
  ['true', 1],
  [],
  [0, 255],
  [200, [200, 299]],
  'GET',
  'http://localhost/',
  'file:///etc/passwd',
  { argv: ['true'] },
  [{ kind: 'noop' }],
  { queue: 'default' },
  true,
  false,
];

/** Out of a body, as the wire has it. */
const AS_RECEIVED: readonly unknown[] = JSON.parse(JSON.stringify(HOSTILE));

const membersOf = (type: Dto) => [
  ...new Set(
    getMetadataStorage()
      .getTargetValidationMetadatas(type, '', false, false)
      .map(({ propertyName }) => propertyName),
  ),
];

/** An instance as it is decoded, with some members said and the others as the DTO makes them. */
function instancesOf(type: Dto): fc.Arbitrary<object> {
  const value = fc.oneof(
    { weight: 3, arbitrary: fc.constantFrom<unknown>(...FITTING) },
    { weight: 1, arbitrary: fc.constantFrom<unknown>(...AS_RECEIVED, undefined) },
    { weight: 1, arbitrary: fc.jsonValue() },
  );
  const said = fc.dictionary(fc.constantFrom('', ...membersOf(type)), value, { maxKeys: 5 });
  return said.map((members) => {
    const { '': _, ...known } = members;
    return Object.assign(new type(), known);
  });
}

const isAcceptedByLibrary = (dto: object) =>
  validateSync(dto, { forbidUnknownValues: false, stopAtFirstError: true }).length === 0;

describe.each(DTOS)('%s', (_, type) => {
  const isAccepted = compileRules(type);

  it.each([1, 2, Date.now() % 2 ** 31])('is accepted exactly where the library finds no fault (seed %d)', (seed) => {
    fc.assert(
      fc.property(instancesOf(type), (dto) => {
        expect(isAccepted(dto)).toBe(isAcceptedByLibrary(dto));
      }),
      { numRuns: 500, seed },
    );
  });
});

it('accepts what a caller usually says, and refuses what is wrong in one member', () => {
  const isAccepted = compileRules(SubmitDto);
  const usual = { kind: 'command', spec: { argv: ['true'] }, queue: 'deploys', priority: 5, labels: { team: 'ops' } };
  expect(isAccepted(Object.assign(new SubmitDto(), usual))).toBe(true);
  for (const wrong of [{ kind: 'job' }, { queue: '-' }, { priority: 101 }, { labels: { team: 1 } }, { name: '' }]) {
    expect(isAccepted(Object.assign(new SubmitDto(), usual, wrong)), JSON.stringify(wrong)).toBe(false);
  }
});

it('accepts nothing where a rule has a form that is not known here', () => {
  class Inner {
    @IsString()
    name = 'x';
  }
  class Nested {
    @ValidateNested()
    inner = new Inner();
  }
  class Each {
    @IsOptional()
    @IsArray()
    @IsString({ each: true })
    names = ['x'];
  }
  for (const type of [Nested, Each]) {
    expect(isAcceptedByLibrary(new type())).toBe(true);
    expect(compileRules(type)(new type()), type.name).toBe(false);
  }
});
