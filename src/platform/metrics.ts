/**
 * What keeps the number of a process's series bounded, whatever callers do: a label's value is one of a closed list, or
 * one of the first names that the process met. Everything else is told as `(other)`.
 */

export const OTHER = '(other)';

/** The value as a label, when it is one of these. */
export function labelOf<T extends string>(known: readonly T[], value: string): T | typeof OTHER {
  return known.find((word) => word === value) ?? OTHER;
}

/** Names that callers choose, as the values of a label: each keeps its own as long as there is room for another. */
export class LabelNames {
  private readonly met = new Set<string>();

  /** `first` are those that must not be crowded out. */
  constructor(
    private readonly limit: number,
    first: readonly string[] = [],
  ) {
    for (const name of first) this.labelOf(name);
  }

  /** In the order in which they were met. */
  get names(): string[] {
    return [...this.met];
  }

  labelOf(name: string): string {
    if (this.met.has(name)) return name;
    if (this.met.size >= this.limit) return OTHER;
    this.met.add(name);
    return name;
  }
}
