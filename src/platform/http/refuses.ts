/** What a route is refused with beyond what every route of its form is: the OpenAPI document lists both. */
import type { ProblemCode } from '../../kernel/problems.js';
import { Documented } from './document.js';

/** What `@Refuses()` leaves on an operation; it doesn't get into the document. */
export const REFUSES_MARK = 'x-refuses';

/** On a handler: these problems may be the answer. */
export function Refuses(...codes: readonly ProblemCode[]): MethodDecorator {
  return Documented((api) => api.ApiExtension(REFUSES_MARK, codes));
}
