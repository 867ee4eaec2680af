/**
 * Notes for the OpenAPI document, written beside the code they describe. They are functions that are called only when
 * the document is built, so that a serving process never loads the generator (18 MiB and 0.7 s of boot, measured).
 */

/** The decorators of the generator, by their own names. */
export type Swagger = typeof import('@nestjs/swagger');

type AnyDecorator = ClassDecorator | MethodDecorator | PropertyDecorator;

interface Note {
  readonly decorator: (swagger: Swagger) => AnyDecorator;
  readonly target: object;
  readonly key: string | symbol | undefined;
}

const notes: Note[] = [];

/** On a controller, a handler or a member of a DTO: applies this decorator of the generator once a document is built. */
export function Documented(
  decorator: (swagger: Swagger) => AnyDecorator,
): ClassDecorator & MethodDecorator & PropertyDecorator {
  return (target: object, key?: string | symbol) => {
    notes.push({ decorator, target, key });
  };
}

/** Applies every note so far, in the order in which decorators of the generator would have been. */
export function applyNotes(swagger: Swagger): void {
  for (const { decorator, target, key } of notes.splice(0)) {
    const descriptor = key === undefined ? undefined : Object.getOwnPropertyDescriptor(target, key);
    Reflect.decorate([decorator(swagger) as MethodDecorator], target, key as string, descriptor as PropertyDescriptor);
  }
}
