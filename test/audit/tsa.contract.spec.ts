/** The client of a time-stamping authority against a real one made of openssl, honest and misbehaving in every way. */
import { createHash } from 'node:crypto';
import { createServer } from 'node:net';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { requestTimeStamp, timeStampRequest } from '../../src/audit/tsa.js';
import { startTsa, type TsaMode, type TsaServer } from './tsa.fixture.js';

const LINK = createHash('sha256').update('an entry').digest('hex');

let tsa: TsaServer;
beforeAll(async () => {
  tsa = await startTsa();
});
afterAll(() => tsa.close());

const ask = (mode: TsaMode, signal = new AbortController().signal) => {
  tsa.mode = mode;
  return requestTimeStamp(tsa.url, LINK, signal);
};

it('the request is the 69 bytes of the format, about the hash of the link', () => {
  const link = '9159ad3212881e6c378b8e3c66f6855ae1a8383c4029f4e537654cef9ec5e8ab';
  expect(timeStampRequest(link, Buffer.from('4011223344556677', 'hex')).toString('hex')).toBe(
    `3043020101${'3031300d060960864801650304020105000420'}5b9d79b375ea4b47501126c7da48db718aa943dc103789d5a0e12ff84e1f323a` +
      '020840112233445566770101ff',
  );
});

it.each(['honest', 'ecdsa'] as const)('a token of an authority (%s) is checked and kept as it came', async (mode) => {
  const before = tsa.requests.length;
  const answer = await ask(mode);
  if ('reason' in answer) throw new Error(answer.reason);
  const [request] = tsa.requests.slice(before);
  expect(request).toHaveLength(69);
  expect(tsa.paths.at(-1)).toBe('POST /tsr?key=secret application/timestamp-query');
  expect(answer.stamp.nonce).toBe(request?.subarray(58, 66).toString('hex'));
  expect(answer.stamp.nonce).toMatch(/^[4-7]/);
  expect(await tsa.authority.accepts(answer.token, request!.subarray(24, 56).toString('hex'))).toBe(true);
});

it('every request has a nonce of its own', async () => {
  await Promise.all([ask('honest'), ask('honest')]);
  const [one, other] = tsa.requests.slice(-2);
  expect(one).not.toEqual(other);
});

describe('an authority that misbehaves gets a reason that says what to do, never a timestamp', () => {
  it.each<readonly [TsaMode, string]>([
    ['otherImprint', "answered with what can't be used: the timestamp is of another link"],
    ['otherNonce', 'answered another request than ours: its nonce is not the one sent'],
    ['noCertificate', "answered with what can't be used: the timestamp token carries no certificate"],
    ['wrongUsage', "answered with what can't be used: the signer's certificate is not one for timestamping"],
    ['bitFlipped', "answered with what can't be used: the signature of the timestamp does not hold"],
    ['garbage', "answered with what can't be used: the answer ends too early"],
    ['rejection', 'refused: rejection, "Bad request format or system error."'],
    ['huge', 'answered with more than 64 KiB'],
    ['redirect', "answered with a redirect (307), which isn't followed; set CAPSTAN_TSA_URL to where it leads"],
    ['serverError', 'answered with status 500'],
    [
      'webPage',
      'answered with something else than application/timestamp-reply; check that CAPSTAN_TSA_URL is its address for RFC 3161',
    ],
  ])('%s', async (mode, reason) => {
    expect(await ask(mode)).toEqual({ reason });
  });

  it('hangs up', async () => {
    expect(await ask('hangsUp')).toMatchObject({ reason: expect.stringMatching(/^can't be reached \(\w+\)/) });
  });

  it('a redirect is not followed', async () => {
    const before = tsa.paths.length;
    await ask('redirect');
    expect(tsa.paths.slice(before)).toEqual(['POST /tsr?key=secret application/timestamp-query']);
  });

  it('there is none: the port is closed', async () => {
    const server = createServer().listen(0, '127.0.0.1');
    await new Promise((resolve) => server.once('listening', resolve));
    const address = server.address();
    await new Promise((resolve) => server.close(resolve));
    if (typeof address !== 'object') throw new Error('no address');
    const url = `http://127.0.0.1:${address?.port}/`;
    expect(await requestTimeStamp(url, LINK, new AbortController().signal)).toEqual({
      reason: "can't be reached (ECONNREFUSED); check CAPSTAN_TSA_URL and the way there",
    });
  });

  it('silent from the start or in the middle: waited for 10 s and no longer, and not at all by a process that stops', async () => {
    const before = tsa.requests.length;
    const silent = ask('silent');
    await expect.poll(() => tsa.requests.length, { timeout: 10_000 }).toBe(before + 1);
    const stopping = new AbortController();
    const stuck = ask('stuck');
    const stopped = ask('stuck', stopping.signal);
    await expect.poll(() => tsa.requests.length, { timeout: 10_000 }).toBe(before + 3);
    stopping.abort();
    expect(await Promise.race([silent, stopped])).toEqual({ reason: 'was not waited for' });
    const inVain = { reason: 'gave no answer within 10 s' };
    expect(await Promise.all([silent, stuck])).toEqual([inVain, inVain]);
  });
});
