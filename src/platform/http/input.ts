/**
 * Decodes input into a DTO that declares its members with class-validator, and turns what is wrong with it into
 * faults with JSON pointers. Members that the DTO doesn't declare are refused, never ignored.
 */
import {
  getMetadataStorage,
  registerDecorator,
  ValidateIf,
  type ValidationArguments,
  type ValidationError,
  type ValidationOptions,
  validateSync,
} from 'class-validator';
import { escapePointer } from '../../kernel/json.js';
import { type InputFault, invalidInput } from '../../kernel/problems.js';
import { compileRules } from './compiled-rules.js';

type Dto = abstract new () => object;
type Members = Readonly<Record<string, unknown>>;

/**
 * Finds what is wrong with a value: pointers are relative to it (`''` is the value itself, `/0` its first item).
 * `owner` is the DTO that it is a member of, for a rule between two members.
 */
export type FindFaults = (value: unknown, owner: object) => readonly InputFault[];

const HOLDS = 'holds';

/** The rules of `@Holds()`, by the prototype and the member that they stand at. */
const rulesOf = new WeakMap<object, Map<string, FindFaults>>();

/** The member satisfies a rule of our own, which names each place where it doesn't. */
export function Holds(findFaults: FindFaults): PropertyDecorator {
  return (target, key) => {
    const rules = rulesOf.get(target) ?? new Map<string, FindFaults>();
    rulesOf.set(target, rules.set(String(key), findFaults));
    registerDecorator({
      name: HOLDS,
      target: target.constructor,
      propertyName: String(key),
      validator: {
        validate: (value: unknown, at?: ValidationArguments) => findFaults(value, at?.object ?? {}).length === 0,
      },
    });
  };
}

/** The member may be absent, but not null (`@IsOptional()` allows both). */
export function MayBeAbsent(options?: ValidationOptions): PropertyDecorator {
  return ValidateIf((_, value: unknown) => value !== undefined, options);
}

/** An instance of `type` with the members of `input`. Throws `invalid_input`; pointers begin with `prefix`. */
export function decodeInput<T extends object>(type: new () => T, input: Members, prefix: string): T {
  const { value, faults } = checkInput(type, input, prefix);
  if (faults.length > 0) throw invalidInput(faults);
  return value;
}

/** Like `decodeInput`, but gathers the faults: for a whole that reports all of its parts at once. */
export function checkInput<T extends object>(
  type: new () => T,
  input: Members,
  prefix: string,
): { readonly value: T; readonly faults: readonly InputFault[] } {
  const { members, isAccepted } = shapeOf(type);
  const value = new type();
  const faults: InputFault[] = [];
  // Only declared names are copied: class-validator looks its rules up through the instance's `constructor`.
  for (const name of Object.keys(input)) {
    if (members.has(name)) Reflect.set(value, name, input[name]);
    else faults.push({ pointer: `${prefix}${escapePointer(name)}`, message: 'unknown member' });
  }
  if (isAccepted(value)) return { value, faults };
  const errors = validateSync(value, { forbidUnknownValues: false, stopAtFirstError: true });
  faults.push(...errors.flatMap((error) => faultsOf(error, prefix)));
  return { value, faults };
}

interface Shape {
  /** The names of the members that it declares. */
  readonly members: ReadonlySet<string>;
  readonly isAccepted: (value: object) => boolean;
}

const shapes = new WeakMap<Dto, Shape>();

function shapeOf(type: Dto): Shape {
  const known = shapes.get(type);
  if (known) return known;
  const rules = getMetadataStorage().getTargetValidationMetadatas(type, '', false, false);
  const shape = { members: new Set(rules.map((rule) => rule.propertyName)), isAccepted: compileRules(type) };
  shapes.set(type, shape);
  return shape;
}

function faultsOf(error: ValidationError, prefix: string): InputFault[] {
  const pointer = `${prefix}${escapePointer(error.property)}`;
  const findFaults = error.constraints && HOLDS in error.constraints ? ruleAt(error.target, error.property) : undefined;
  if (findFaults) {
    return findFaults(error.value, error.target ?? {}).map((fault) => ({
      pointer: pointer + fault.pointer,
      message: fault.message,
    }));
  }
  const messages = Object.values(error.constraints ?? { unknown: 'is invalid' });
  // The library begins its messages with the member's name, which the pointer says already.
  return messages.map((message) => ({ pointer, message: message.replace(`${error.property} `, '') }));
}

/** The rule of a member, which a parent class may have declared. */
function ruleAt(target: object | undefined, member: string): FindFaults | undefined {
  for (let at: object | null = target ?? null; at !== null; at = Object.getPrototypeOf(at)) {
    const rule = rulesOf.get(at)?.get(member);
    if (rule) return rule;
  }
  return undefined;
}
