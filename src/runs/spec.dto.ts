/** What each kind of run is told to do, as it comes in: checked, completed with its defaults, ready to be stored. */
import { IsOptional, IsString, Length, Matches, MaxLength } from 'class-validator';
import { escapePointer } from '../kernel/json.js';
import type { InputFault } from '../kernel/problems.js';
import { Documented } from '../platform/http/document.js';
import { Holds, MayBeAbsent } from '../platform/http/input.js';
import { nullable, optionalStringMap } from '../platform/http/schema.js';
import { HttpSpec } from './http-spec.dto.js';
import type { Kind } from './run.js';

/** More than the bound of a whole spec lets through; what a kernel takes is for the worker that starts the tool to say. */
const MAX_ARGUMENTS = 65_536;
const MAX_ENV_ENTRIES = 1_024;
const MAX_ENV_NAME = 255;
const MAX_TEXT = 256 * 1024;
const MAX_PATH = 4_096;
const INTERPRETERS = ['bash', 'sh', 'python3', 'node'];

/** Strings for a program. Their length is bounded by that of the whole spec. */
function argumentFaults(value: unknown): InputFault[] {
  if (!Array.isArray(value)) return [{ pointer: '', message: 'must be an array of strings' }];
  if (value.length > MAX_ARGUMENTS) return [{ pointer: '', message: `must have at most ${MAX_ARGUMENTS} items` }];
  return value.flatMap((item: unknown, i) => {
    return typeof item === 'string' ? [] : [{ pointer: `/${i}`, message: 'must be a string' }];
  });
}

/** A program and its arguments. */
function argvFaults(value: unknown): InputFault[] {
  const faults = argumentFaults(value);
  if (faults.length > 0 || !Array.isArray(value)) return faults;
  if (value.length === 0) return [{ pointer: '', message: 'must have at least one item: the program' }];
  return value[0] === '' ? [{ pointer: '/0', message: 'must name a program' }] : [];
}

function interpreterFaults(value: unknown): InputFault[] {
  if (Array.isArray(value)) return argvFaults(value);
  const isKnown = typeof value === 'string' && INTERPRETERS.includes(value);
  return isKnown ? [] : [{ pointer: '', message: `must be one of ${INTERPRETERS.join(', ')}, or an argv` }];
}

/** The run's own environment. It reaches the tool and nothing else: no program that the server runs for itself. */
function envFaults(value: unknown): InputFault[] {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    return [{ pointer: '', message: 'must be an object of strings' }];
  }
  const entries: [string, unknown][] = Object.entries(value);
  if (entries.length > MAX_ENV_ENTRIES)
    return [{ pointer: '', message: `must have at most ${MAX_ENV_ENTRIES} members` }];
  return entries.flatMap(([name, text]) => {
    const fault = envFault(name, text);
    return fault === undefined ? [] : [{ pointer: `/${escapePointer(name)}`, message: fault }];
  });
}

function envFault(name: string, text: unknown): string | undefined {
  if (!/^[A-Za-z_][A-Za-z0-9_]*$/.test(name) || name.length > MAX_ENV_NAME) {
    return `a variable's name is 1 to ${MAX_ENV_NAME} of A-Z, a-z, 0-9 and _, not beginning with a digit`;
  }
  if (name.startsWith('CAPSTAN_')) return 'names that begin with CAPSTAN_ are given to the tool by the server';
  return typeof text === 'string' ? undefined : 'must be a string';
}

function exitCodeFaults(value: unknown): InputFault[] {
  if (!Array.isArray(value) || value.length < 1 || value.length > 64) {
    return [{ pointer: '', message: 'must be an array of 1 to 64 exit codes' }];
  }
  return value.flatMap((code: unknown, i) => {
    if (!Number.isInteger(code) || Number(code) < 0 || Number(code) > 255) {
      return [{ pointer: `/${i}`, message: 'must be an integer from 0 to 255' }];
    }
    return value.indexOf(code) === i ? [] : [{ pointer: `/${i}`, message: 'is there already' }];
  });
}

/** Kind `noop` does nothing and needs nothing. */
export class NoopSpec {}

/** What every kind that starts a tool has. */
class ToolSpec {
  @Documented((api) =>
    api.ApiProperty(
      optionalStringMap({
        description:
          'Added to the clean environment of the tool (PATH, HOME, LANG and CAPSTAN_…). It reaches the tool alone, never ' +
          'a program that the server runs for itself. Names: `[A-Za-z_][A-Za-z0-9_]*`, none that begins with CAPSTAN_.',
      }),
    ),
  )
  @MayBeAbsent()
  @Holds(envFaults)
  env: Readonly<Record<string, string>> = {};

  @Documented((api) =>
    api.ApiProperty(
      nullable('string', {
        minLength: 1,
        maxLength: MAX_PATH,
        pattern: '^/',
        required: false,
        default: null,
        description:
          "Absolute path of the working directory, on the worker's machine. Null: the run's private directory.",
      }),
    ),
  )
  @IsOptional()
  @IsString()
  @Length(1, MAX_PATH)
  @Matches(/^\//, { message: 'must be an absolute path: it begins with /' })
  cwd: string | null = null;

  @Documented((api) =>
    api.ApiProperty(
      nullable('string', {
        maxLength: MAX_TEXT,
        required: false,
        default: null,
        description: 'Standard input, as UTF-8.',
      }),
    ),
  )
  @IsOptional()
  @IsString()
  @MaxLength(MAX_TEXT)
  stdin: string | null = null;

  @Documented((api) =>
    api.ApiProperty({
      type: 'array',
      items: { type: 'integer', minimum: 0, maximum: 255 },
      minItems: 1,
      maxItems: 64,
      uniqueItems: true,
      required: false,
      default: [0],
      description: 'Exit codes that mean success.',
    }),
  )
  @MayBeAbsent()
  @Holds(exitCodeFaults)
  successCodes: readonly number[] = [0];
}

/** Kind `command`: a program and its arguments, without a shell. */
export class CommandSpec extends ToolSpec {
  @Documented((api) =>
    api.ApiProperty({
      type: 'array',
      items: { type: 'string' },
      minItems: 1,
      maxItems: MAX_ARGUMENTS,
      example: ['pg_dump', '-Fc', 'app'],
      description: 'The program (not empty) and its arguments.',
    }),
  )
  @Holds(argvFaults)
  argv: readonly string[];
}

/** Kind `script`: a text for an interpreter. */
export class ScriptSpec extends ToolSpec {
  @Documented((api) =>
    api.ApiProperty({
      oneOf: [
        { type: 'string', enum: INTERPRETERS },
        { type: 'array', items: { type: 'string' }, minItems: 1, maxItems: MAX_ARGUMENTS },
      ],
      description: "A known interpreter, or the argv of any other; the script's file and `args` are appended.",
    }),
  )
  @Holds(interpreterFaults)
  interpreter: string | readonly string[];

  @Documented((api) => api.ApiProperty({ type: String, minLength: 1, maxLength: MAX_TEXT }))
  @IsString()
  @Length(1, MAX_TEXT)
  content: string;

  @Documented((api) =>
    api.ApiProperty({
      type: 'array',
      items: { type: 'string' },
      maxItems: MAX_ARGUMENTS,
      required: false,
      default: [],
    }),
  )
  @MayBeAbsent()
  @Holds(argumentFaults)
  args: readonly string[] = [];
}

/** The class that checks a kind's spec. */
export const SPEC_OF: { readonly [K in Kind]: new () => object } = {
  noop: NoopSpec,
  command: CommandSpec,
  script: ScriptSpec,
  http: HttpSpec,
};
