/**
 * The rules of a DTO as one function, made once from what its decorators left with class-validator: the very functions that
 * the library would call, without what it does around each of them (it looks its rules up anew for every object: 6 of the
 * 7 µs of a small one). What is accepted here is accepted there; the other way round a rule of a form that isn't known
 * here accepts nothing, and the library decides.
 */
import { getMetadataStorage, ValidationTypes } from 'class-validator';

/** Whether `value`, a member of `dto`, satisfies a rule; or whether the member's rules count, for a condition. */
type Rule = (value: unknown, dto: object) => boolean;

interface MemberRules {
  readonly conditions: Rule[];
  readonly rules: Rule[];
}

/** True when the library is certain to find no fault in an instance of `type`. */
export function compileRules(type: abstract new () => object): (dto: object) => boolean {
  const storage = getMetadataStorage();
  const members = new Map<string, MemberRules>();
  for (const metadata of storage.getTargetValidationMetadatas(type, '', false, false)) {
    const { propertyName, constraints, each, validateIf } = metadata;
    const member = members.get(propertyName) ?? { conditions: [], rules: [] };
    members.set(propertyName, member);
    if (metadata.type === ValidationTypes.CONDITIONAL_VALIDATION) {
      const condition: unknown = constraints[0];
      if (typeof condition === 'function') member.conditions.push((value, dto) => condition(dto, value) === true);
    } else if (metadata.type === ValidationTypes.CUSTOM_VALIDATION && !each && validateIf === undefined) {
      for (const { instance } of storage.getTargetValidatorConstraints(metadata.constraintCls)) {
        const [targetName, property] = [type.name, propertyName];
        // Member by member: spreading takes ten times as long. A promise is no answer.
        member.rules.push(
          (value, object) => instance.validate(value, { targetName, property, object, value, constraints }) === true,
        );
      }
    } else return () => false;
  }
  const all = [...members];
  return (dto) =>
    all.every(([name, { conditions, rules }]) => {
      const value: unknown = Reflect.get(dto, name);
      const counts = conditions.every((condition) => condition(value, dto));
      return !counts || rules.every((rule) => rule(value, dto));
    });
}
