/** What to do next, in words of the command line, about what a server refused. */
import type { Failure } from './failure.js';

const ADVICE: Readonly<Record<number, readonly string[]>> = {
  401: ['kept for good: capstan config set NAME --url URL --token-file FILE'],
  403: ['this token may not do it; with another one: --token-file FILE or --profile NAME'],
  404: ['what there is: capstan runs', 'what belongs to another organization than the token is not there either'],
};

/** The same failure, with what helps against it. */
export function advised(failure: Failure): Failure {
  const { status = 0, code } = failure.problem;
  // What has no code is no answer of ours.
  const advice = code === undefined ? [] : (ADVICE[status] ?? []);
  return advice.length === 0 ? failure : failure.with(advice);
}
