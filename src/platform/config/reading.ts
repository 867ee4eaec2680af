/**
 * One setting as the environment or a secret's file gives it. Invariant: a fault names the variable and what it
 * expects, never the text that was given nor the path of a file.
 */
import { readFileSync } from 'node:fs';
import { type Environment, type Fault, fileVariable, type Setting } from './setting.js';

export type Source = 'default' | 'environment' | 'file';

/** `text` is what was given, or the default's description when it has no text; show it only of what is no secret. */
export type Reading<T> = { readonly source: Source } & (
  | { readonly value: T; readonly text: string }
  | { readonly fault: Fault }
);

export function isGiven(setting: Setting<unknown>, env: Environment): boolean {
  return Boolean(env[setting.name] || (setting.isSecret && env[fileVariable(setting.name)]));
}

export function readSetting<T>(setting: Setting<T>, env: Environment): Reading<T> {
  const { name, fallback } = setting;
  const text = env[name];
  const path = setting.isSecret ? env[fileVariable(name)] : undefined;
  if (text && path) {
    const message = `${name} and ${fileVariable(name)} are both set: set one of them`;
    return { source: 'environment', fault: { name, message } };
  }
  if (path) return readFromFile(setting, path);
  if (text) return decode(setting, 'environment', text, `${name}: expected ${setting.expects}`);
  const value = fallback.value();
  return { source: 'default', value, text: fallback.literal || value === undefined ? fallback.shown : String(value) };
}

function readFromFile<T>(setting: Setting<T>, path: string): Reading<T> {
  const variable = fileVariable(setting.name);
  let text: string;
  try {
    text = readFileSync(path, 'utf8');
  } catch {
    return { source: 'file', fault: { name: setting.name, message: `${variable}: the file it names cannot be read` } };
  }
  // An empty file is refused by the parser: taken as unset it would quietly start an embedded PostgreSQL.
  const message = `${variable}: expected a file that holds ${setting.expects}`;
  return decode(setting, 'file', text.replace(/\r?\n$/, ''), message);
}

function decode<T>(setting: Setting<T>, source: Source, text: string, message: string): Reading<T> {
  const value = setting.parse(text);
  return value === undefined ? { source, fault: { name: setting.name, message } } : { source, value, text };
}
