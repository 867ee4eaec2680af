/**
 * Makes `pg` read a database URL's `sslmode` the way the application's other driver does, so that both reach the same
 * server with the same URL: `require` encrypts without a check of the certificate, `prefer` falls back to plain.
 */

/** The URL for `pg`; `plain` asks for no TLS, the server having said that it has none. */
export function sessionUrl(databaseUrl: string, plain = false): string {
  const [base = '', query = ''] = splitOnce(databaseUrl, '?');
  const params = new URLSearchParams(query);
  const mode = params.get('sslmode');
  if (mode === null) return databaseUrl;
  if (plain) params.set('sslmode', 'disable');
  // Only libpq's meanings tell `require` from `verify-full`; the modes below are unknown to them, or refused.
  params.set('uselibpqcompat', 'true');
  if (mode === 'allow' || mode === 'no-verify') params.set('sslmode', 'require');
  if (mode === 'verify-ca' && !params.has('sslrootcert')) params.set('sslmode', 'verify-full');
  return `${base}?${params}`;
}

/** Whether a server without TLS may be talked to in plain. */
export function allowsPlain(databaseUrl: string): boolean {
  const [, query = ''] = splitOnce(databaseUrl, '?');
  return new URLSearchParams(query).get('sslmode') === 'prefer';
}

/** Calls `connect` with the URL for `pg`, and once more without TLS where that is allowed and the server has none. */
export async function connectAs<T>(databaseUrl: string, connect: (url: string) => Promise<T>): Promise<T> {
  try {
    return await connect(sessionUrl(databaseUrl));
  } catch (error) {
    if (!allowsPlain(databaseUrl) || !/does not support SSL/.test(String(error))) throw error;
    return await connect(sessionUrl(databaseUrl, true));
  }
}

function splitOnce(text: string, separator: string): string[] {
  const at = text.indexOf(separator);
  return at < 0 ? [text] : [text.slice(0, at), text.slice(at + 1)];
}
