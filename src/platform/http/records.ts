/** What a route leaves in an audit chain: said in the OpenAPI document as `x-entry`, and tested from there. */
import { Documented } from './document.js';

/** On a handler that changes something: the actions of the entries that it may append, one of which it answers with. */
export function Records(...actions: readonly [string, ...string[]]): MethodDecorator {
  return Documented((api) => api.ApiExtension('x-entry', actions));
}
