/** What the routes for many runs answer, as far as the client decides on it. */
import { type Fields, fieldsOf, isFields, listOf, numberOf, optional, textOf, unexpected } from './decode.js';
import { problemFailure } from './failure.js';

export interface Canceled {
  readonly matched: number;
  readonly canceled: number;
  /** Those whose tools are being stopped. */
  readonly stopping: number;
  readonly next: string | null;
}

export interface Reruns {
  readonly matched: number;
  readonly items: readonly Rerun[];
  readonly next: string | null;
}

export interface Rerun {
  readonly rerunOf: string;
  readonly id: string;
}

export interface BatchItem {
  readonly document: Fields;
  /** Of the run, when one was taken. */
  readonly id: string | null;
  /** Why none was. */
  readonly refusal: string | null;
}

export function decodeCanceled(value: unknown): Canceled {
  const answer = fieldsOf(value, 'the answer');
  const [matched, canceled] = [numberOf(answer, 'matched'), numberOf(answer, 'canceled')];
  return { matched, canceled, stopping: numberOf(answer, 'stopping'), next: optional(answer, 'next', textOf) };
}

export function decodeReruns(value: unknown): Reruns {
  const answer = fieldsOf(value, 'the answer');
  const items = listOf(answer, 'items').map((item) => {
    const rerun = fieldsOf(item, 'a rerun');
    return { rerunOf: textOf(rerun, 'rerunOf'), id: textOf(rerun, 'id') };
  });
  return { matched: numberOf(answer, 'matched'), items, next: optional(answer, 'next', textOf) };
}

/** `count` items. Fails with `unable` when the batch was refused as a whole. */
export function decodeBatch(value: unknown, count: number): readonly BatchItem[] {
  const answer = fieldsOf(value, 'the answer');
  if (!Array.isArray(answer.items) && typeof answer.title === 'string') throw problemFailure(answer);
  const items = listOf(answer, 'items').map(batchItem);
  if (items.length !== count) throw unexpected(`it has ${items.length} items for ${count} runs`);
  return items;
}

function batchItem(value: unknown): BatchItem {
  const document = fieldsOf(value, 'an item');
  if (isFields(document.run)) return { document, id: textOf(document.run, 'id'), refusal: null };
  return { document, id: null, refusal: refusalIn(fieldsOf(document.problem, 'the problem')) };
}

function refusalIn(problem: Fields): string {
  const faults = Array.isArray(problem.errors) ? problem.errors.filter(isFields) : [];
  if (faults.length > 0) return faults.map(({ pointer, message }) => `${pointer || 'it'}: ${message}`).join('; ');
  return String(problem.detail ?? problem.title ?? 'no reason was given');
}
