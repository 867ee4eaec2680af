/**
 * A real balancer as an operator would set it up: round robin, no affinity, health by `/readyz`. nginx asks nobody
 * (its health checks are passive) and HAProxy does; both are told of members that come and go by a reload.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { until } from '../server.js';
import { freePort } from './port.js';

export type BalancerKind = 'nginx' | 'haproxy';

export interface BalancerOptions {
  /** `false`: every request has a connection of its own, on both sides. */
  readonly keepAlive?: boolean;
  /** nginx sends a POST again, to another member, when the first gave no answer or 503. */
  readonly repeatsPosts?: boolean;
  /** `false`: HAProxy sends nothing again and goes by its health checks alone. */
  readonly repeats?: boolean;
}

export interface Balancer {
  readonly url: string;
  /** Leads to these ports from now on; what is under way ends where it is. */
  lead(ports: readonly number[]): Promise<void>;
  close(): Promise<void>;
}

export async function startBalancer(
  kind: BalancerKind,
  ports: readonly number[],
  options: BalancerOptions = {},
): Promise<Balancer> {
  const folder = await mkdtemp(join(tmpdir(), `capstan-${kind}-`));
  const port = await freePort();
  const file = join(folder, 'balancer.conf');
  const write = (members: readonly number[]) =>
    writeFile(file, (kind === 'nginx' ? nginxConfig : haproxyConfig)(folder, port, members, options));
  await write(ports);
  const child = spawn(...command(kind, folder, file), { stdio: ['ignore', 'ignore', 'pipe'] });
  let errors = '';
  let isMissing = false;
  child.on('error', (error) => {
    isMissing = true;
    errors += `${error.message}: install the Debian package "${kind}"`;
  });
  child.stderr?.on('data', (data) => {
    errors += data;
  });
  const url = `http://127.0.0.1:${port}`;
  const isUp = async () => {
    if (isMissing || child.exitCode !== null) throw new Error(`${kind} ended: ${errors}`);
    return fetch(`${url}/healthz`).then(
      ({ ok }) => ok,
      () => false,
    );
  };
  await until(`${kind} answers (${errors})`, isUp);
  return {
    url,
    lead: async (members) => {
      await write(members);
      // nginx: new workers, the old ones end what they have. HAProxy in master-worker mode: the same.
      child.kill(kind === 'nginx' ? 'SIGHUP' : 'SIGUSR2');
    },
    close: async () => {
      await end(child);
      await rm(folder, { recursive: true, force: true });
    },
  };
}

function command(kind: BalancerKind, folder: string, file: string): [string, string[]] {
  return kind === 'nginx'
    ? ['/usr/sbin/nginx', ['-p', folder, '-c', file, '-e', 'stderr']]
    : ['/usr/sbin/haproxy', ['-W', '-f', file, '-p', join(folder, 'pid')]];
}

async function end(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const ended = once(child, 'exit');
  child.kill('SIGTERM');
  await ended;
}

function nginxConfig(
  folder: string,
  port: number,
  members: readonly number[],
  { keepAlive = true, repeatsPosts = false }: BalancerOptions,
): string {
  return `
daemon off;
master_process on;
${process.getuid?.() === 0 ? 'user root;' : ''}
worker_processes 1;
pid ${folder}/pid;
error_log stderr error;
events { worker_connections 1024; }
http {
  access_log off;
  client_body_temp_path ${folder}/body; proxy_temp_path ${folder}/proxy; fastcgi_temp_path ${folder}/f;
  uwsgi_temp_path ${folder}/u; scgi_temp_path ${folder}/s;
  client_max_body_size 32m;
  keepalive_timeout ${keepAlive ? '60s' : '0'};
  upstream capstan {
    ${members.map((member) => `server 127.0.0.1:${member} max_fails=1 fail_timeout=1s;`).join('\n    ')}
    ${keepAlive ? 'keepalive 16;' : ''}
  }
  server {
    listen 127.0.0.1:${port} backlog=1024;
    location / {
      proxy_pass http://capstan;
      proxy_http_version 1.1;
      proxy_set_header Host $http_host;
      proxy_set_header Connection ${keepAlive ? '""' : 'close'};
      proxy_buffering off;
      proxy_request_buffering ${repeatsPosts ? 'on' : 'off'};
      proxy_read_timeout 300s;
      proxy_connect_timeout 2s;
      proxy_next_upstream error timeout http_503${repeatsPosts ? ' non_idempotent' : ''};
      proxy_next_upstream_tries ${Math.max(members.length, 1)};
    }
  }
}
`;
}

function haproxyConfig(
  _folder: string,
  port: number,
  members: readonly number[],
  { keepAlive = true, repeats = true }: BalancerOptions,
): string {
  return `
global
  maxconn 2000
defaults
  mode http
  timeout connect 2s
  timeout client 300s
  timeout server 300s
  timeout check 3s
  ${repeats ? 'option redispatch 1\n  retries 3\n  retry-on conn-failure empty-response 503' : 'retries 0'}
  ${keepAlive ? 'option http-keep-alive' : 'option httpclose'}
frontend in
  bind 127.0.0.1:${port}
  default_backend capstan
backend capstan
  balance roundrobin
  option httpchk GET /readyz
  http-check expect status 200
  default-server check inter 500ms fall 3 rise 1
  ${members.map((member, i) => `server r${i} 127.0.0.1:${member}`).join('\n  ')}
`;
}
