/** Generated from the OpenAPI document by `npm run generate`: whoever wants other types changes a controller or DTO. */

export interface paths {
    "/healthz": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Is the process alive
         * @description Says nothing about the database: who restarts processes asks here.
         */
        get: operations["healthz"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/metrics": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Numbers for Prometheus
         * @description Any token opens it here; `CAPSTAN_METRICS_PORT` serves it without.
         */
        get: operations["metrics"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/openapi.json": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** This document */
        get: operations["getOpenApi"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/readyz": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Should this replica get requests
         * @description Whether it does what it is for right now, each check by its name: who sends requests asks here.
         */
        get: operations["readyz"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/audit": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List audit entries, newest first
         * @description The next page is named by `next` and a `Link` header. A page may hold fewer entries than asked for, even none, while `next` leads on: a search by `action` or `principal` alone looks at entries one after the other, for a second at most on one page.
         */
        get: operations["listAudit"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/audit/bundle": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Export entries as a signed bundle
         * @description A LoomSeal 0.1 document that anybody checks offline (`capstan verify`), of up to 10,000 adjacent entries: all, or the newest 10,000, unless a range or a run is named. The export is an entry itself, written before the answer: `Audit-Receipt`. A wider range is answered 422 with the `windows` to ask for, a chain that does not verify 409 with `seq` and `check`, a replica without the current signing key 503.
         */
        get: operations["getAuditBundle"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/audit/key": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Show the signing key of the installation, and those before it
         * @description Public halves alone, as the installation's chain records them.
         */
        get: operations["getAuditKey"];
        put?: never;
        /**
         * Make another key the signing key of the installation
         * @description Takes the public half alone: the private one goes to the replicas, by CAPSTAN_AUDIT_KEY. From the answer on replicas start with the new key; those that still hold another go on, and answer bundles 503 until they are started with it. For admins of the installation. Idempotent.
         */
        post: operations["rotateAuditKey"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/audit/receipts/{receipt}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Ask whether an entry still stands
         * @description For receipts of the own organization and of the installation, whose entry only its admins see. Every answer to a change bears one in `Audit-Receipt`: who keeps it finds out when the end of the chain is cut off.
         */
        get: operations["checkAuditReceipt"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/audit/verify": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Recompute an audit chain
         * @description A broken chain is an answer, not an error: 200 with `ok: false`, `brokenAt` and `check`. Of a window, `entries` counts its own; what stands before it is taken for given, the head and the anchors are checked all the same. With `Accept: text/event-stream` the answer comes as events: `progress`, `{ verified, of }`, several times a second, and last `result`, this very object; without it, the verification failed and may be asked for again.
         */
        get: operations["verifyAudit"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/queues": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Queues, by name
         * @description Those that are paused and those that a connected worker serves by name; for admins of the installation also those out of which something runs or could be claimed. Runs that are not due yet are not counted.
         */
        get: operations["listQueues"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/queues/{name}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        /**
         * Pause a queue, or resume it
         * @description Idempotent: said again it changes nothing. A pause for another reason takes the place of the one before. While a queue is paused its runs wait, in their order, and what runs goes on; runs are submitted to it as ever. A claim that is under way when the pause is answered may still take some. Any queue may be paused, one without runs too. For admins of the installation; others are answered 403.
         */
        put: operations["putQueue"];
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/retention": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * How long ended runs are kept
         * @description Of the caller's organization.
         */
        get: operations["getRetention"];
        /**
         * Say how long ended runs are kept
         * @description Of the caller's organization. A run that ended longer ago is removed within minutes, with its events and output, and its id then answers 404. Each removal is an entry of the audit chain, `runs.removed`, with counts and a digest; the entries of the runs stay. Idempotent: said again it changes nothing.
         */
        put: operations["putRetention"];
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/runs": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List runs, newest first
         * @description Runs in lists come without `spec` and `output`. The next page is named by `next` and a `Link` header; it alone says whether there are more: a page may hold fewer than `limit`, or none, where the search was long.
         */
        get: operations["listRuns"];
        put?: never;
        /**
         * Submit a run
         * @description With an `Idempotency-Key`, or with an `id` of your own, the same request gives the same run however often it is sent: 200 and `Idempotency-Replayed: true`. A key is kept until 7 days after its run ended.
         */
        post: operations["submitRun"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/runs/batch": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Submit many runs
         * @description Up to 1,000 submits in one transaction, each answered by itself: what one of them is refused for touches no other. 200 when at least one was taken, 422 with the same body when none was. The body may have 16 MiB. The same request with the same `Idempotency-Key` gives the same runs: 200 for each, and `Idempotency-Replayed: true`.
         */
        post: operations["submitRuns"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/runs/cancel": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Cancel what matches a filter
         * @description Runs that wait end at once, tools of running ones are stopped within seconds. It works for up to 25 s, newest first, in small steps that hold up nobody; what is submitted meanwhile is not meant. The same without a `cursor` begins at the newest again: with `createdBefore` it means no more when it is repeated. Each run has an audit entry.
         */
        post: operations["cancelRuns"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/runs/rerun": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Run again what matches a filter
         * @description Makes a new run for each of up to `limit` ended ones, newest first, in one transaction. The same request with the same `Idempotency-Key` makes nothing more: it names the runs that it made, with `Idempotency-Replayed: true`.
         */
        post: operations["rerunRuns"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/runs/{id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Show a run */
        get: operations["getRun"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/runs/{id}/cancel": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Cancel a run
         * @description Idempotent. A run that waits ends at once; the tool of a running one is stopped within seconds.
         */
        post: operations["cancelRun"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/runs/{id}/events": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List a run's events, oldest first
         * @description In the order of `seq`. `run.claimed` and `run.started` tell of the latest claim and have no `seq`: they stand where their instant puts them, each once in a whole walk.
         */
        get: operations["listRunEvents"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/runs/{id}/output": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Read a run's output
         * @description The kept bytes, unchanged, both streams in order of arrival unless one is named. All there is by now: ask again with `Range: bytes=N-` for what came after the first N bytes (416 when nothing did), or follow the run with its `/stream`. Of an output that outgrew CAPSTAN_OUTPUT_LIMIT the first half is kept and the latest; a line in between names what is missing, and the header `Capstan-Output-Cut` how many bytes that are. Offsets count that line too: they hold as long as the header stays the same. A `Range` is ignored beside `tail`, and while a run goes on whose output may be dropped before it is read.
         */
        get: operations["getRunOutput"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/runs/{id}/rerun": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Run an ended run again
         * @description Makes a new run of the same kind, spec, queue, priority, labels, name and timeout, whose `rerunOf` names the ended one, which stays what it is. A run that has not ended is answered 409 with its state.
         */
        post: operations["rerunRun"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/runs/{id}/stream": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Follow a run
         * @description Server-sent events. `output`: `{ fence, batch, stream, at, data }`, data in base64. `event`: an item of `/events`. `cut`: `{ fence, after, next, bytes }`, output that was dropped between two batches; bytes of both streams, or null. `end`: the run, as the last message; then the connection is closed. A connection that was lost before that goes on at any replica behind the id in `Last-Event-ID`, without gap or double. A comment comes every 15 s. Who takes nothing for 60 s is cut off. At most 500 streams of a caller (429) and 1,000 in all (503) per replica. With `stream` and `tail` output alone is left out: all events come; `Last-Event-ID` wins over `tail`.
         */
        get: operations["streamRun"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/runs/{id}/why": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Why a run is not running
         * @description The claim's own predicates: each that fails, with what would change it. No reasons: some worker with a free slot takes the run with its next claim from the front of its queues, which is within about a second. Of a run that was taken or has ended it tells only that. A run with a `notBefore` becomes claimable up to 1.9 s after it.
         */
        get: operations["whyRun"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/version": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** What runs here */
        get: operations["getVersion"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/workers": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Workers that live, and those that ended within a day, newest first */
        get: operations["listWorkers"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/workers/{id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Show a worker */
        get: operations["getWorker"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/workers/{id}/drain": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Take a worker out of service
         * @description Idempotent. From the answer on it claims and starts nothing; what it runs goes on to its end, what it had claimed goes back. It lasts as long as this life of the process: started again, that is a new worker. A worker that is `stopped` or `lost` is answered 409. For admins of the installation; others are answered 403.
         */
        post: operations["drainWorker"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/workers/{id}/undrain": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Put a drained worker back into service
         * @description Idempotent. A worker that is `stopped` or `lost`, or whose process is stopping, is answered 409: that is not undone. For admins of the installation; others are answered 403.
         */
        post: operations["undrainWorker"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
}
export type webhooks = Record<string, never>;
export interface components {
    schemas: {
        BatchAnswer: {
            /** @description In the order of `runs`. */
            items: components["schemas"]["BatchItemAnswer"][];
        };
        Batch: {
            runs: components["schemas"]["BatchItem"][];
        };
        BatchItemAnswer: {
            /**
             * @description 201 for a run that was made, 200 for one that the same key or id made before, 4xx for a problem.
             * @example 201
             */
            status: number;
            /** @description As in lists: without `spec` and `output`. */
            run?: components["schemas"]["RunSummary"];
            /** @description Its pointers begin at the item. */
            problem?: components["schemas"]["Problem"];
        };
        BatchItem: {
            /** @description An id that the caller chose: run_… or a UUID. The same id with the same spec gives that run again. */
            id?: string;
            /** @enum {string} */
            kind: "noop" | "command" | "script" | "http";
            /**
             * @default null
             * @example nightly backup
             */
            name?: string | null;
            /** @default default */
            queue?: string;
            /**
             * @description Higher goes first.
             * @default 0
             */
            priority?: number;
            /**
             * @description Keys match `^[A-Za-z0-9][A-Za-z0-9._/-]{0,62}$`; values are at most 255 bytes long.
             * @default {}
             */
            labels?: {
                [key: string]: string;
            };
            /**
             * @description From the start of the tool: an integer and ms, s, m, h or d, at most 365d. A request (kind `http`) for which neither this nor `CAPSTAN_RUN_TIMEOUT` says anything has 60s.
             * @default null
             * @example 15m
             */
            timeout?: string | null;
            /**
             * Format: date-time
             * @description Not claimed before this instant.
             * @default null
             */
            notBefore?: string | null;
            /** @description The one of the kind, at most 256 KiB. May be left out where the kind needs nothing. */
            spec?: components["schemas"]["NoopSpec"] | components["schemas"]["CommandSpec"] | components["schemas"]["ScriptSpec"] | components["schemas"]["HttpSpec"];
            /**
             * @description As the header of that name with this submit alone would be: the same key gives the same run, by either route. At most 255 bytes.
             * @default null
             */
            idempotencyKey?: string | null;
        };
        BulkCancelAnswer: {
            dryRun: boolean;
            /** @description Runs that it came past and that match. */
            matched: number;
            /** @description There may be more: the same request with this as its `cursor` goes on. It alone tells when all is done. */
            next: string | null;
            /** @description Runs that have ended canceled. */
            canceled: number;
            /** @description Runs whose holders still have to stop them. */
            stopping: number;
        };
        BulkCancel: {
            /** @description As in the query of a list. At least one member. */
            filter: components["schemas"]["RunFilter"];
            /**
             * @description Only counts what matches, up to 100,000, and changes nothing.
             * @default false
             */
            dryRun?: boolean;
            /**
             * @description `next` of the answer before.
             * @default null
             */
            cursor?: string | null;
        };
        BulkRerunAnswer: {
            dryRun: boolean;
            /** @description Runs that it came past and that match. */
            matched: number;
            /** @description There may be more: the same request with this as its `cursor` goes on. It alone tells when all is done. */
            next: string | null;
            items: components["schemas"]["Rerun"][];
        };
        BulkRerun: {
            /** @description As in the query of a list. At least one member. */
            filter: components["schemas"]["RunFilter"];
            /**
             * @description Only counts what matches, up to 100,000, and changes nothing.
             * @default false
             */
            dryRun?: boolean;
            /**
             * @description `next` of the answer before.
             * @default null
             */
            cursor?: string | null;
            /**
             * @description Of how many runs new ones are made at most.
             * @default 1000
             */
            limit?: number;
        };
        ChainHead: {
            /** @example 7 */
            seq: number;
            /**
             * @description Lower-case hex; empty before the first entry.
             * @example 5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f
             */
            link: string;
        };
        CommandSpec: {
            /**
             * @description Added to the clean environment of the tool (PATH, HOME, LANG and CAPSTAN_…). It reaches the tool alone, never a program that the server runs for itself. Names: `[A-Za-z_][A-Za-z0-9_]*`, none that begins with CAPSTAN_.
             * @default {}
             */
            env?: {
                [key: string]: string;
            };
            /**
             * @description Absolute path of the working directory, on the worker's machine. Null: the run's private directory.
             * @default null
             */
            cwd?: string | null;
            /**
             * @description Standard input, as UTF-8.
             * @default null
             */
            stdin?: string | null;
            /**
             * @description Exit codes that mean success.
             * @default [
             *       0
             *     ]
             */
            successCodes?: number[];
            /**
             * @description The program (not empty) and its arguments.
             * @example [
             *       "pg_dump",
             *       "-Fc",
             *       "app"
             *     ]
             */
            argv: string[];
        };
        End: {
            /**
             * @example tool_failed
             * @enum {string}
             */
            code: "ok" | "tool_failed" | "step_failed" | "invalid_input" | "unavailable" | "limit_exceeded" | "worker_lost" | "replica_stopped" | "supervisor_lost" | "effects_unknown" | "recovery_limit" | "timeout" | "canceled" | "denied" | "expired" | "internal";
            /**
             * @description Of a cancel.
             * @enum {string|null}
             */
            kind: "requested" | "deadline" | "overrun" | "parent_ended" | "superseded" | null;
            /** @example exit code 7 */
            detail: string;
            /** @example 7 */
            exitCode: number | null;
            /** @description Such as SIGTERM. */
            signal: string | null;
            /**
             * @description The worker or principal that wrote the end.
             * @example wrk_01h455vb4pex5vsknk084sn02q
             */
            by: string;
            /**
             * Format: date-time
             * @example 2030-01-31T08:00:12.345Z
             */
            at: string;
            /** @example 1 */
            fence: number;
        };
        Entry: {
            /** @example 7 */
            seq: number;
            /**
             * Format: date-time
             * @example 2030-01-31T08:00:12.345Z
             */
            at: string | null;
            /** @example run.ended */
            action: string | null;
            /** @example tok_01h455vb4pex5vsknk084sn02q */
            principal: string | null;
            /**
             * @description Its name at that moment.
             * @example admin
             */
            principalName: string | null;
            /** @example run_01h455vb4pex5vsknk084sn02q */
            object: string | null;
            /** @example run_01h455vb4pex5vsknk084sn02q */
            run: string | null;
            /**
             * @description All that the entry says, as it is hashed.
             * @example {
             *       "action": "run.ended",
             *       "object": "run_01h455vb4pex5vsknk084sn02q",
             *       "state": "failed"
             *     }
             */
            payload: {
                [key: string]: unknown;
            } | null;
            /**
             * @description `<chain>:<seq>:<link>`
             * @example org_01h455vb4pex5vsknk084sn02q:7:5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f
             */
            receipt: string;
        };
        EntryPage: {
            items: components["schemas"]["Entry"][];
            /** @description The cursor of the next page. */
            next: string | null;
        };
        Event: {
            /** @description Null for what is told from how the run stands. */
            seq: number | null;
            /**
             * @description What begins with `run.` is the product’s own; the rest was reported by the tool.
             * @example run.started
             */
            type: string;
            /** Format: date-time */
            at: string;
            /**
             * @example {
             *       "worker": "wrk_01h455vb4pex5vsknk084sn02q"
             *     }
             */
            data: {
                [key: string]: unknown;
            };
        };
        EventPage: {
            items: components["schemas"]["Event"][];
            /** @description Cursor of the next page. */
            next: string | null;
        };
        Health: {
            /** @enum {string} */
            status: "ok";
        };
        HttpSpec: {
            /**
             * @default GET
             * @enum {string}
             */
            method?: "GET" | "HEAD" | "POST" | "PUT" | "PATCH" | "DELETE" | "OPTIONS";
            /**
             * Format: uri
             * @description Without credentials and without a fragment. Only public addresses are connected to, and those that `CAPSTAN_HTTP_ALLOW` of the worker names; anything else ends the run failed, code `denied`.
             * @example https://example.com/hooks/deploy
             */
            url: string;
            /**
             * @description `Capstan-Run-Id`, `Capstan-Fence` and, where none is given, `User-Agent` are added. Host, Connection, Content-Length, Transfer-Encoding and their like, Proxy-… and Capstan-… are refused. A redirect to another origin carries none of these headers but a few harmless ones, such as Accept and Content-Type.
             * @default {}
             */
            headers?: {
                [key: string]: string;
            };
            /**
             * @description Sent as UTF-8. Must be null for GET and HEAD.
             * @default null
             */
            body?: string | null;
            /**
             * @description Statuses that mean success. Null: any 2xx.
             * @default null
             */
            expectedStatus?: number[] | null;
            /**
             * @description How many redirects are followed, each checked as the first request is.
             * @default 0
             */
            followRedirects?: number;
        };
        Key: {
            /**
             * @description Of the current key; null while none was recorded.
             * @example sha256:5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f
             */
            fingerprint: string | null;
            /**
             * @description The 32 raw bytes in base64.
             * @example ebVWLo/mVPlAeLES6KmLp5AfhTrmlb7X4OORC60ElmQ=
             */
            publicKey: string | null;
            /**
             * Format: date-time
             * @example 2030-01-31T08:00:00.000Z
             */
            recordedAt: string | null;
            /**
             * @description Of the entry that recorded it.
             * @example ins_01h455vb4pex5vsknk084sn02q:7:5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f
             */
            receipt: string | null;
            /**
             * @description Those before it, newest first.
             * @example []
             */
            past: components["schemas"]["RecordedKey"][];
            /**
             * @description Whether the replica that answers signs with the current key.
             * @example true
             */
            signs: boolean;
        };
        NewKey: {
            /**
             * @description The 32 raw bytes of an Ed25519 public key in standard base64.
             * @example ebVWLo/mVPlAeLES6KmLp5AfhTrmlb7X4OORC60ElmQ=
             */
            publicKey: string;
        };
        NoopSpec: Record<string, never>;
        Pause: {
            /** Format: date-time */
            at: string;
            /** @example tok_01h455vb4pex5vsknk084sn02q */
            by: string;
            /**
             * @description Its name at that moment.
             * @example admin
             */
            byName: string;
            /** @example the database is moving */
            reason: string;
        };
        Principal: {
            /**
             * @example token
             * @enum {string}
             */
            type: "token" | "system";
            /** @example tok_01h455vb4pex5vsknk084sn02q */
            id: string;
            /**
             * @description Its name at that moment.
             * @example admin
             */
            name: string;
        };
        Problem: {
            /** Format: uri */
            type: string;
            title: string;
            status: number;
            detail: string;
            /** @enum {string} */
            code: "malformed_request" | "idempotency_key_invalid" | "unauthorized" | "forbidden" | "not_found" | "method_not_allowed" | "chain_broken" | "id_conflict" | "run_ended" | "run_not_ended" | "worker_ended" | "worker_stopping" | "run_removed" | "precondition_failed" | "body_too_large" | "unsupported_media_type" | "range_not_satisfiable" | "invalid_input" | "idempotency_key_reused" | "too_many_streams" | "signing_key_missing" | "signing_key_superseded" | "internal" | "unavailable";
            errors?: {
                /** @description JSON pointer into the body, or `?name` for a parameter. */
                pointer: string;
                message: string;
            }[];
            requestId: string;
        };
        PutQueue: {
            /** @example true */
            paused: boolean;
            /**
             * @description For whoever wonders later, and for the record. A pause needs one.
             * @default null
             * @example the database is moving
             */
            reason?: string | null;
        };
        PutRetention: {
            /**
             * @description A duration of 1d to 365d; null for the installation's own, `CAPSTAN_RETENTION`.
             * @example 14d
             */
            retention: string | null;
        };
        Queue: {
            /** @example default */
            name: string;
            /** @description Null while runs are claimed out of it. */
            paused: components["schemas"]["Pause"] | null;
            /**
             * @description Of its pause, as `If-Match` takes it, quotes and all: numbers do not change it.
             * @example "0f4c1d9a6f0b5f4f6f1f6a1f3f0e9a77"
             */
            etag: string;
            /**
             * @description Runs that are pending and due. Of all organizations; null for callers who are no admins of the installation.
             * @example 3
             */
            depth: number | null;
            /** @description The depth is large, and estimated from a sample. */
            depthIsEstimate: boolean;
            /**
             * Format: date-time
             * @description Since when the run longest in line has been due; null when nothing waits, or as `depth` is.
             * @example 2030-01-31T08:00:00.000Z
             */
            oldestPendingAt: string | null;
            /**
             * @description Runs whose tools run. Of all organizations; null for callers who are no admins of the installation.
             * @example 1
             */
            running: number | null;
            /**
             * @description Connected workers that take runs out of it.
             * @example 2
             */
            workers: number;
        };
        QueuePage: {
            items: components["schemas"]["Queue"][];
            /** @description Cursor of the next page. */
            next: string | null;
        };
        Readiness: {
            /** @enum {string} */
            status: "ready" | "not ready";
            /**
             * @description Each check by its name: `ok`, or what is wrong.
             * @example {
             *       "database": "ok",
             *       "migrations": "ok",
             *       "process": "ok"
             *     }
             */
            checks: {
                [key: string]: string;
            };
        };
        Receipt: {
            /** @example org_01h455vb4pex5vsknk084sn02q:7:5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f */
            receipt: string;
            /**
             * @description Whether the chain still holds that very entry.
             * @example true
             */
            holds: boolean;
            /**
             * @description `missing`: the chain ends before it, or it was taken out; `altered`: its content is not what was linked; `differs`: another entry stands in its place.
             * @enum {string}
             */
            reason?: "missing" | "altered" | "differs";
            entry: components["schemas"]["Entry"] | null;
        };
        Receipts: {
            /**
             * @description `chain:seq:link` of the audit entry.
             * @example org_01h455vb4pex5vsknk084sn02q:7:5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f
             */
            submitted: string | null;
            /** @description Once a cancel was asked for. */
            cancelRequested?: string;
            /** @example org_01h455vb4pex5vsknk084sn02q:7:5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f */
            ended: string | null;
        };
        RecordedKey: {
            /**
             * @description `sha256:` of the 32 raw bytes of the key.
             * @example sha256:5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f
             */
            fingerprint: string;
            /**
             * @description The 32 raw bytes in base64.
             * @example ebVWLo/mVPlAeLES6KmLp5AfhTrmlb7X4OORC60ElmQ=
             */
            publicKey: string;
            /**
             * Format: date-time
             * @example 2030-01-31T08:00:00.000Z
             */
            recordedAt: string;
            /**
             * @description Of the entry that recorded it.
             * @example ins_01h455vb4pex5vsknk084sn02q:7:5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f
             */
            receipt: string;
        };
        Replica: {
            /**
             * @description Its stable name.
             * @example r1
             */
            name: string;
            /**
             * @description The worker that it is right now.
             * @example wrk_01h455vb4pex5vsknk084sn02q
             */
            id: string | null;
        };
        Rerun: {
            /** @example run_01h455vb4pex5vsknk084sn02q */
            rerunOf: string;
            /**
             * @description The new run.
             * @example run_01hx2ew2hde8g8njcz5w3mrv6k
             */
            id: string;
        };
        Retention: {
            /**
             * @description A run goes this long after its end, with its events and output. Its audit entries stay.
             * @example 14d
             */
            retention: string;
            /**
             * @description The organization says nothing of its own.
             * @example false
             */
            isDefault: boolean;
            /**
             * @description Of what the organization says, as `If-Match` takes it, quotes and all.
             * @example "1209600000"
             */
            etag: string;
        };
        Run: {
            /** @example run_01h455vb4pex5vsknk084sn02q */
            id: string;
            /** @example org_01h455vb4pex5vsknk084sn02q */
            organizationId: string;
            /**
             * @example command
             * @enum {string}
             */
            kind: "noop" | "command" | "script" | "http";
            /** @example nightly backup */
            name: string | null;
            /** @example default */
            queue: string;
            /** @example 0 */
            priority: number;
            /**
             * @example {
             *       "env": "prod"
             *     }
             */
            labels: {
                [key: string]: string;
            };
            /** @example 15m */
            timeout: string | null;
            /** Format: date-time */
            notBefore: string | null;
            /**
             * @example failed
             * @enum {string}
             */
            state: "held" | "pending" | "claimed" | "running" | "parked" | "succeeded" | "failed" | "canceled" | "timed_out" | "interrupted" | "rejected";
            /**
             * @example api
             * @enum {string}
             */
            origin: "api" | "schedule" | "trigger" | "parent";
            principal: components["schemas"]["Principal"];
            parentId: string | null;
            /** @example run_01h455vb4pex5vsknk084sn02q */
            rootId: string;
            rerunOf: string | null;
            /**
             * Format: date-time
             * @example 2030-01-31T08:00:00.000Z
             */
            createdAt: string;
            /**
             * Format: date-time
             * @example 2030-01-31T08:00:00.012Z
             */
            claimedAt: string | null;
            /**
             * Format: date-time
             * @example 2030-01-31T08:00:00.034Z
             */
            startedAt: string | null;
            /**
             * Format: date-time
             * @example 2030-01-31T08:00:12.345Z
             */
            endedAt: string | null;
            /**
             * @description Plus one at each claim.
             * @example 1
             */
            fence: number;
            worker: components["schemas"]["RunWorker"] | null;
            /** Format: date-time */
            cancelRequestedAt: string | null;
            /** @description The latest event of type `progress` that its tool reported in `CAPSTAN_EVENTS_FILE`. */
            progress: {
                [key: string]: unknown;
            } | null;
            end: components["schemas"]["End"] | null;
            receipts: components["schemas"]["Receipts"];
            /**
             * @description Complete: what the submit left out stands here with its default.
             * @example {
             *       "argv": [
             *         "pg_dump",
             *         "-Fc",
             *         "app"
             *       ],
             *       "env": {},
             *       "cwd": null,
             *       "stdin": null,
             *       "successCodes": [
             *         0
             *       ]
             *     }
             */
            spec: components["schemas"]["NoopSpec"] | components["schemas"]["CommandSpec"] | components["schemas"]["ScriptSpec"] | components["schemas"]["HttpSpec"];
            /** @description The result of the run as any JSON value: what its tool left in `CAPSTAN_OUTPUT_FILE`, or null. */
            output: unknown;
        };
        RunFilter: {
            /**
             * @description Any of these: repeated, or a comma list.
             * @example [
             *       "pending",
             *       "running"
             *     ]
             */
            state?: ("held" | "pending" | "claimed" | "running" | "parked" | "succeeded" | "failed" | "canceled" | "timed_out" | "interrupted" | "rejected")[] | string;
            /**
             * @description What executes them.
             * @enum {string}
             */
            kind?: "noop" | "command" | "script" | "http";
            /** @description The queue they are in. */
            queue?: string;
            /**
             * @description What launched them.
             * @enum {string}
             */
            origin?: "api" | "schedule" | "trigger" | "parent";
            /**
             * @description All of these: `key:value`.
             * @example [
             *       "env:prod"
             *     ]
             */
            label?: string[] | string;
            /**
             * @description The id of the token that made them.
             * @example tok_01h455vb4pex5vsknk084sn02q
             */
            principal?: string;
            /** @description The id of the run whose children they are. */
            parent?: string;
            /**
             * @description All of these words are words of the name, in any case and order.
             * @example nightly backup
             */
            q?: string;
            /**
             * Format: date-time
             * @description Made later than this.
             */
            createdAfter?: string;
            /**
             * Format: date-time
             * @description Made earlier than this.
             */
            createdBefore?: string;
        };
        RunPage: {
            items: components["schemas"]["RunSummary"][];
            /** @description The cursor of the next page. */
            next: string | null;
        };
        RunSummary: {
            /** @example run_01h455vb4pex5vsknk084sn02q */
            id: string;
            /** @example org_01h455vb4pex5vsknk084sn02q */
            organizationId: string;
            /**
             * @example command
             * @enum {string}
             */
            kind: "noop" | "command" | "script" | "http";
            /** @example nightly backup */
            name: string | null;
            /** @example default */
            queue: string;
            /** @example 0 */
            priority: number;
            /**
             * @example {
             *       "env": "prod"
             *     }
             */
            labels: {
                [key: string]: string;
            };
            /** @example 15m */
            timeout: string | null;
            /** Format: date-time */
            notBefore: string | null;
            /**
             * @example failed
             * @enum {string}
             */
            state: "held" | "pending" | "claimed" | "running" | "parked" | "succeeded" | "failed" | "canceled" | "timed_out" | "interrupted" | "rejected";
            /**
             * @example api
             * @enum {string}
             */
            origin: "api" | "schedule" | "trigger" | "parent";
            principal: components["schemas"]["Principal"];
            parentId: string | null;
            /** @example run_01h455vb4pex5vsknk084sn02q */
            rootId: string;
            rerunOf: string | null;
            /**
             * Format: date-time
             * @example 2030-01-31T08:00:00.000Z
             */
            createdAt: string;
            /**
             * Format: date-time
             * @example 2030-01-31T08:00:00.012Z
             */
            claimedAt: string | null;
            /**
             * Format: date-time
             * @example 2030-01-31T08:00:00.034Z
             */
            startedAt: string | null;
            /**
             * Format: date-time
             * @example 2030-01-31T08:00:12.345Z
             */
            endedAt: string | null;
            /**
             * @description Plus one at each claim.
             * @example 1
             */
            fence: number;
            worker: components["schemas"]["RunWorker"] | null;
            /** Format: date-time */
            cancelRequestedAt: string | null;
            /** @description The latest event of type `progress` that its tool reported in `CAPSTAN_EVENTS_FILE`. */
            progress: {
                [key: string]: unknown;
            } | null;
            end: components["schemas"]["End"] | null;
            receipts: components["schemas"]["Receipts"];
        };
        RunWorker: {
            /** @example wrk_01h455vb4pex5vsknk084sn02q */
            id: string;
            /** @example r1 */
            name: string | null;
            /**
             * Format: date-time
             * @description While it holds the run.
             */
            leaseUntil: string | null;
        };
        ScriptSpec: {
            /**
             * @description Added to the clean environment of the tool (PATH, HOME, LANG and CAPSTAN_…). It reaches the tool alone, never a program that the server runs for itself. Names: `[A-Za-z_][A-Za-z0-9_]*`, none that begins with CAPSTAN_.
             * @default {}
             */
            env?: {
                [key: string]: string;
            };
            /**
             * @description Absolute path of the working directory, on the worker's machine. Null: the run's private directory.
             * @default null
             */
            cwd?: string | null;
            /**
             * @description Standard input, as UTF-8.
             * @default null
             */
            stdin?: string | null;
            /**
             * @description Exit codes that mean success.
             * @default [
             *       0
             *     ]
             */
            successCodes?: number[];
            /** @description A known interpreter, or the argv of any other; the script's file and `args` are appended. */
            interpreter: ("bash" | "sh" | "python3" | "node") | string[];
            content: string;
            /** @default [] */
            args?: string[];
        };
        Submit: {
            /** @description An id that the caller chose: run_… or a UUID. The same id with the same spec gives that run again. */
            id?: string;
            /** @enum {string} */
            kind: "noop" | "command" | "script" | "http";
            /**
             * @default null
             * @example nightly backup
             */
            name?: string | null;
            /** @default default */
            queue?: string;
            /**
             * @description Higher goes first.
             * @default 0
             */
            priority?: number;
            /**
             * @description Keys match `^[A-Za-z0-9][A-Za-z0-9._/-]{0,62}$`; values are at most 255 bytes long.
             * @default {}
             */
            labels?: {
                [key: string]: string;
            };
            /**
             * @description From the start of the tool: an integer and ms, s, m, h or d, at most 365d. A request (kind `http`) for which neither this nor `CAPSTAN_RUN_TIMEOUT` says anything has 60s.
             * @default null
             * @example 15m
             */
            timeout?: string | null;
            /**
             * Format: date-time
             * @description Not claimed before this instant.
             * @default null
             */
            notBefore?: string | null;
            /** @description The one of the kind, at most 256 KiB. May be left out where the kind needs nothing. */
            spec?: components["schemas"]["NoopSpec"] | components["schemas"]["CommandSpec"] | components["schemas"]["ScriptSpec"] | components["schemas"]["HttpSpec"];
        };
        Verification: {
            /**
             * @description Whether every entry asked for, the head and the anchors hold.
             * @example true
             */
            ok: boolean;
            /**
             * @description Id of the chain.
             * @example org_01h455vb4pex5vsknk084sn02q
             */
            chain: string;
            /**
             * @description Entries that were recomputed and held.
             * @example 7
             */
            entries: number;
            head: components["schemas"]["ChainHead"];
            /**
             * @description Outside timestamps of the chain that equal their entries.
             * @example 0
             */
            anchors: number;
            /** @description Sequence number of the first that fails. */
            brokenAt?: number;
            /**
             * @description `gap`: no such entry; `prev`: it follows another entry; `link`: its content is not what was linked; `column`: what it is found by says something else; `head`: the head is another; `behind`: the chain led further before; `anchor`: its timestamp is of another entry, or forged.
             * @enum {string}
             */
            check?: "gap" | "prev" | "link" | "column" | "head" | "behind" | "anchor";
            /** @description Milliseconds that it took. */
            tookMs: number;
        };
        Version: {
            /** @example capstan */
            name: string;
            /** @example 0.1.0 */
            version: string;
            /**
             * @description The newest migration that this build knows.
             * @example 0007_lists
             */
            schema: string;
            /**
             * @description Version of Node.js.
             * @example 20.19.2
             */
            node: string;
            replica: components["schemas"]["Replica"];
        };
        Why: {
            /** @example run_01h455vb4pex5vsknk084sn02q */
            id: string;
            /**
             * @example pending
             * @enum {string}
             */
            state: "held" | "pending" | "claimed" | "running" | "parked" | "succeeded" | "failed" | "canceled" | "timed_out" | "interrupted" | "rejected";
            /** @example default */
            queue: string;
            /** @description The next claim takes it: exactly when there are no reasons. */
            isClaimable: boolean;
            reasons: components["schemas"]["WhyReason"][];
        };
        WhyReason: {
            /**
             * @description What stands between the run and the next claim. `not_pending`: it has ended, was taken, or is held or parked. `cancel_requested`: whoever has it stops it. `not_before`: it is not due. `queue_paused`. `no_worker`: no worker that has slots is connected; `not_served`: none of them serves the queue; `workers_draining`: those that do are draining; `slots_busy`: the others have no free slot. `others_first`: more runs than there are free slots go before it.
             * @example queue_paused
             * @enum {string}
             */
            code: "not_pending" | "cancel_requested" | "not_before" | "queue_paused" | "no_worker" | "not_served" | "workers_draining" | "slots_busy" | "others_first";
            /**
             * @description For a person.
             * @example queue default is paused: the database is moving
             */
            detail: string;
            /**
             * @description What would change it, for a person.
             * @example an admin of the installation resumes it
             */
            remedy: string;
            /**
             * Format: date-time
             * @description When it ends by itself, where known.
             */
            until: string | null;
            /** @description Of `slots_busy` and `workers_draining`: who, at most 10. */
            workers?: components["schemas"]["WhyWorker"][];
            /** @description Of `not_served`: what connected workers serve, at most 20. */
            queues?: string[];
            /** @description Of `others_first`: how many, of all organizations. */
            ahead?: number;
            /** @description No more than `ahead` were counted. */
            isAtLeast?: boolean;
        };
        WhyWorker: {
            /** @example wrk_01h455vb4pex5vsknk084sn02q */
            id: string;
            /** @example r1 */
            name: string;
            slots?: number;
            /** @description Runs that it holds, of all organizations. */
            held?: number;
            /**
             * @description Which of them are the caller's, the longest held first, at most 10.
             * @example [
             *       "run_01h455vb4pex5vsknk084sn02q"
             *     ]
             */
            runs?: string[];
        };
        Worker: {
            /** @example wrk_01h455vb4pex5vsknk084sn02q */
            id: string;
            /**
             * @description Its stable name, the same in each life.
             * @example r1
             */
            name: string;
            /** @enum {string} */
            kind: "replica" | "worker";
            /** @enum {string} */
            state: "live" | "draining" | "stopped" | "lost";
            /** @example 4 */
            slots: number;
            /**
             * @example [
             *       "default"
             *     ]
             */
            queues: string[];
            /** @example 0.1.0 */
            version: string;
            /** Format: date-time */
            leaseUntil: string;
            /**
             * Format: date-time
             * @description When it last renewed its lease.
             */
            seenAt: string;
            /**
             * @description Seen within the last 30 s.
             * @example true
             */
            connected: boolean;
            /** @description Runs whose tools it runs. */
            running: number;
            /** Format: date-time */
            startedAt: string;
            /** Format: date-time */
            endedAt: string | null;
        };
        WorkerPage: {
            items: components["schemas"]["Worker"][];
            /** @description Cursor of the next page. */
            next: string | null;
        };
    };
    responses: {
        /** @description `body_too_large`: The body is too large. */
        body_too_large: {
            headers: {
                [name: string]: unknown;
            };
            content: {
                "application/problem+json": components["schemas"]["Problem"];
            };
        };
        /** @description `chain_broken`: The audit chain is broken. */
        chain_broken: {
            headers: {
                [name: string]: unknown;
            };
            content: {
                "application/problem+json": components["schemas"]["Problem"];
            };
        };
        /** @description `forbidden`: Not allowed. */
        forbidden: {
            headers: {
                [name: string]: unknown;
            };
            content: {
                "application/problem+json": components["schemas"]["Problem"];
            };
        };
        /** @description `id_conflict`: The id is taken. */
        id_conflict: {
            headers: {
                [name: string]: unknown;
            };
            content: {
                "application/problem+json": components["schemas"]["Problem"];
            };
        };
        /** @description `idempotency_key_invalid`: The Idempotency-Key is invalid. */
        idempotency_key_invalid: {
            headers: {
                [name: string]: unknown;
            };
            content: {
                "application/problem+json": components["schemas"]["Problem"];
            };
        };
        /** @description `idempotency_key_reused`: The Idempotency-Key was used with another request. */
        idempotency_key_reused: {
            headers: {
                [name: string]: unknown;
            };
            content: {
                "application/problem+json": components["schemas"]["Problem"];
            };
        };
        /** @description `invalid_input`: The input is invalid. */
        invalid_input: {
            headers: {
                [name: string]: unknown;
            };
            content: {
                "application/problem+json": components["schemas"]["Problem"];
            };
        };
        /** @description `invalid_input`: The input is invalid. `idempotency_key_reused`: The Idempotency-Key was used with another request. */
        "invalid_input.idempotency_key_reused": {
            headers: {
                [name: string]: unknown;
            };
            content: {
                "application/problem+json": components["schemas"]["Problem"];
            };
        };
        /** @description `malformed_request`: The request is malformed. */
        malformed_request: {
            headers: {
                [name: string]: unknown;
            };
            content: {
                "application/problem+json": components["schemas"]["Problem"];
            };
        };
        /** @description `malformed_request`: The request is malformed. `idempotency_key_invalid`: The Idempotency-Key is invalid. */
        "malformed_request.idempotency_key_invalid": {
            headers: {
                [name: string]: unknown;
            };
            content: {
                "application/problem+json": components["schemas"]["Problem"];
            };
        };
        /** @description `not_found`: Not found. */
        not_found: {
            headers: {
                [name: string]: unknown;
            };
            content: {
                "application/problem+json": components["schemas"]["Problem"];
            };
        };
        /** @description `precondition_failed`: It is not as If-Match says. */
        precondition_failed: {
            headers: {
                [name: string]: unknown;
            };
            content: {
                "application/problem+json": components["schemas"]["Problem"];
            };
        };
        /** @description `range_not_satisfiable`: The range is outside the output. */
        range_not_satisfiable: {
            headers: {
                [name: string]: unknown;
            };
            content: {
                "application/problem+json": components["schemas"]["Problem"];
            };
        };
        /** @description `run_ended`: The run has ended. */
        run_ended: {
            headers: {
                [name: string]: unknown;
            };
            content: {
                "application/problem+json": components["schemas"]["Problem"];
            };
        };
        /** @description `run_not_ended`: The run has not ended. */
        run_not_ended: {
            headers: {
                [name: string]: unknown;
            };
            content: {
                "application/problem+json": components["schemas"]["Problem"];
            };
        };
        /** @description `run_removed`: The run was removed. */
        run_removed: {
            headers: {
                [name: string]: unknown;
            };
            content: {
                "application/problem+json": components["schemas"]["Problem"];
            };
        };
        /** @description `signing_key_missing`: There is no signing key. `signing_key_superseded`: The signing key was replaced. `unavailable`: Temporarily unavailable. */
        "signing_key_missing.signing_key_superseded.unavailable": {
            headers: {
                [name: string]: unknown;
            };
            content: {
                "application/problem+json": components["schemas"]["Problem"];
            };
        };
        /** @description `too_many_streams`: Too many open streams. */
        too_many_streams: {
            headers: {
                [name: string]: unknown;
            };
            content: {
                "application/problem+json": components["schemas"]["Problem"];
            };
        };
        /** @description `unauthorized`: Credentials are missing or unknown. */
        unauthorized: {
            headers: {
                [name: string]: unknown;
            };
            content: {
                "application/problem+json": components["schemas"]["Problem"];
            };
        };
        /** @description `unavailable`: Temporarily unavailable. */
        unavailable: {
            headers: {
                [name: string]: unknown;
            };
            content: {
                "application/problem+json": components["schemas"]["Problem"];
            };
        };
        /** @description `unsupported_media_type`: The media type is not supported. */
        unsupported_media_type: {
            headers: {
                [name: string]: unknown;
            };
            content: {
                "application/problem+json": components["schemas"]["Problem"];
            };
        };
        /** @description `worker_ended`: The worker has ended. */
        worker_ended: {
            headers: {
                [name: string]: unknown;
            };
            content: {
                "application/problem+json": components["schemas"]["Problem"];
            };
        };
        /** @description `worker_ended`: The worker has ended. `worker_stopping`: The worker is stopping. */
        "worker_ended.worker_stopping": {
            headers: {
                [name: string]: unknown;
            };
            content: {
                "application/problem+json": components["schemas"]["Problem"];
            };
        };
    };
    parameters: never;
    requestBodies: never;
    headers: {
        /** @description `chain:seq:link` of the audit entry: the one written now, or by the request that this one repeats. */
        AuditReceipt: string;
    };
    pathItems: never;
}
export type $defs = Record<string, never>;
export interface operations {
    healthz: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description It lives. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "status": "ok"
                     *     }
                     */
                    "application/json": components["schemas"]["Health"];
                };
            };
            /** @description A problem: the request was not carried out, or not wholly. */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    metrics: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Text of Prometheus. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "text/plain": string;
                };
            };
            401: components["responses"]["unauthorized"];
            503: components["responses"]["unavailable"];
            /** @description A problem: the request was not carried out, or not wholly. */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    getOpenApi: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description OpenAPI 3.1. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "openapi": "3.1.0",
                     *       "info": {
                     *         "title": "Capstan"
                     *       },
                     *       "paths": {}
                     *     }
                     */
                    "application/json": Record<string, never>;
                };
            };
            /** @description A problem: the request was not carried out, or not wholly. */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    readyz: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description It should. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "status": "ready",
                     *       "checks": {
                     *         "database": "ok",
                     *         "migrations": "ok",
                     *         "process": "ok"
                     *       }
                     *     }
                     */
                    "application/json": components["schemas"]["Readiness"];
                };
            };
            /** @description Not now: see `checks`. */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "status": "ready",
                     *       "checks": {
                     *         "database": "ok",
                     *         "migrations": "ok",
                     *         "process": "ok"
                     *       }
                     *     }
                     */
                    "application/json": components["schemas"]["Readiness"];
                };
            };
            /** @description A problem: the request was not carried out, or not wholly. */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    listAudit: {
        parameters: {
            query?: {
                /** @description The installation's own chain, for its admins; by default the organization's. */
                chain?: "installation";
                /** @description What was done. */
                action?: string;
                /** @description Who. */
                principal?: string;
                /** @description On what. */
                object?: string;
                /** @description All that is about this run. */
                run?: string;
                /** @description Recorded later than this. */
                after?: string;
                /** @description Recorded earlier than this. */
                before?: string;
                /** @description How many there are on a page at most. */
                limit?: number;
                /** @description `next` of the page before, with the same filters. */
                cursor?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description A page. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "items": [
                     *         {
                     *           "seq": 7,
                     *           "at": "2030-01-31T08:00:12.345Z",
                     *           "action": "run.ended",
                     *           "principal": "tok_01h455vb4pex5vsknk084sn02q",
                     *           "principalName": "admin",
                     *           "object": "run_01h455vb4pex5vsknk084sn02q",
                     *           "run": "run_01h455vb4pex5vsknk084sn02q",
                     *           "payload": {
                     *             "action": "run.ended",
                     *             "object": "run_01h455vb4pex5vsknk084sn02q",
                     *             "state": "failed"
                     *           },
                     *           "receipt": "org_01h455vb4pex5vsknk084sn02q:7:5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f"
                     *         }
                     *       ],
                     *       "next": null
                     *     }
                     */
                    "application/json": components["schemas"]["EntryPage"];
                };
            };
            401: components["responses"]["unauthorized"];
            403: components["responses"]["forbidden"];
            422: components["responses"]["invalid_input"];
            503: components["responses"]["unavailable"];
            /** @description A problem: the request was not carried out, or not wholly. */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    getAuditBundle: {
        parameters: {
            query?: {
                /** @description The first entry: its number, or an instant (RFC 3339); included. */
                from?: string;
                /** @description The last entry: its number, or an instant (RFC 3339); included. */
                to?: string;
                /** @description A run: all its entries, and those that stand between them. */
                run?: string;
                /** @description The installation's own chain, for its admins. */
                chain?: "installation";
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The bundle. */
            200: {
                headers: {
                    "Audit-Receipt": components["headers"]["AuditReceipt"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "loomseal": "0.1",
                     *       "bundle_id": "lsb_01h455vb4pex5vsknk084sn02q",
                     *       "chain": {},
                     *       "claims": []
                     *     }
                     */
                    "application/vnd.kordloom.loomseal+json": {
                        [key: string]: unknown;
                    };
                };
            };
            401: components["responses"]["unauthorized"];
            403: components["responses"]["forbidden"];
            409: components["responses"]["chain_broken"];
            422: components["responses"]["invalid_input"];
            503: components["responses"]["signing_key_missing.signing_key_superseded.unavailable"];
            /** @description A problem: the request was not carried out, or not wholly. */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    getAuditKey: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The key, or nulls while there is none. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "fingerprint": "sha256:5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f",
                     *       "publicKey": "ebVWLo/mVPlAeLES6KmLp5AfhTrmlb7X4OORC60ElmQ=",
                     *       "recordedAt": "2030-01-31T08:00:00.000Z",
                     *       "receipt": "ins_01h455vb4pex5vsknk084sn02q:7:5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f",
                     *       "past": [],
                     *       "signs": true
                     *     }
                     */
                    "application/json": components["schemas"]["Key"];
                };
            };
            401: components["responses"]["unauthorized"];
            503: components["responses"]["unavailable"];
            /** @description A problem: the request was not carried out, or not wholly. */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    rotateAuditKey: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "publicKey": "ebVWLo/mVPlAeLES6KmLp5AfhTrmlb7X4OORC60ElmQ="
                 *     }
                 */
                "application/json": components["schemas"]["NewKey"];
            };
        };
        responses: {
            /** @description It signs from now on. */
            200: {
                headers: {
                    "Audit-Receipt": components["headers"]["AuditReceipt"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "fingerprint": "sha256:5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f",
                     *       "publicKey": "ebVWLo/mVPlAeLES6KmLp5AfhTrmlb7X4OORC60ElmQ=",
                     *       "recordedAt": "2030-01-31T08:00:00.000Z",
                     *       "receipt": "ins_01h455vb4pex5vsknk084sn02q:7:5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f",
                     *       "past": [],
                     *       "signs": true
                     *     }
                     */
                    "application/json": components["schemas"]["Key"];
                };
            };
            400: components["responses"]["malformed_request"];
            401: components["responses"]["unauthorized"];
            403: components["responses"]["forbidden"];
            413: components["responses"]["body_too_large"];
            415: components["responses"]["unsupported_media_type"];
            422: components["responses"]["invalid_input"];
            503: components["responses"]["unavailable"];
            /** @description A problem: the request was not carried out, or not wholly. */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    checkAuditReceipt: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description As an `Audit-Receipt` said it. */
                receipt: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Whether it holds. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "receipt": "org_01h455vb4pex5vsknk084sn02q:7:5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f",
                     *       "holds": true,
                     *       "entry": {
                     *         "seq": 7,
                     *         "at": "2030-01-31T08:00:12.345Z",
                     *         "action": "run.ended",
                     *         "principal": "tok_01h455vb4pex5vsknk084sn02q",
                     *         "principalName": "admin",
                     *         "object": "run_01h455vb4pex5vsknk084sn02q",
                     *         "run": "run_01h455vb4pex5vsknk084sn02q",
                     *         "payload": {
                     *           "action": "run.ended",
                     *           "object": "run_01h455vb4pex5vsknk084sn02q",
                     *           "state": "failed"
                     *         },
                     *         "receipt": "org_01h455vb4pex5vsknk084sn02q:7:5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f"
                     *       }
                     *     }
                     */
                    "application/json": components["schemas"]["Receipt"];
                };
            };
            401: components["responses"]["unauthorized"];
            404: components["responses"]["not_found"];
            503: components["responses"]["unavailable"];
            /** @description A problem: the request was not carried out, or not wholly. */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    verifyAudit: {
        parameters: {
            query?: {
                /** @description The installation's own chain, for its admins; by default the organization's. */
                chain?: "installation";
                /** @description The first entry; default: 1. */
                from?: number;
                /** @description The last entry; default: the head. */
                to?: number;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description What was found. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "ok": true,
                     *       "chain": "org_01h455vb4pex5vsknk084sn02q",
                     *       "entries": 7,
                     *       "head": {
                     *         "seq": 7,
                     *         "link": "5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f"
                     *       },
                     *       "anchors": 0,
                     *       "tookMs": 1
                     *     }
                     */
                    "application/json": components["schemas"]["Verification"];
                };
            };
            401: components["responses"]["unauthorized"];
            403: components["responses"]["forbidden"];
            422: components["responses"]["invalid_input"];
            503: components["responses"]["unavailable"];
            /** @description A problem: the request was not carried out, or not wholly. */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    listQueues: {
        parameters: {
            query?: {
                /** @description How many there are on a page at most. */
                limit?: number;
                /** @description `next` of the page before. */
                cursor?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description A page. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "items": [
                     *         {
                     *           "name": "default",
                     *           "paused": {
                     *             "at": "2030-01-31T08:00:00.000Z",
                     *             "by": "tok_01h455vb4pex5vsknk084sn02q",
                     *             "byName": "admin",
                     *             "reason": "the database is moving"
                     *           },
                     *           "etag": "\"0f4c1d9a6f0b5f4f6f1f6a1f3f0e9a77\"",
                     *           "depth": 3,
                     *           "depthIsEstimate": false,
                     *           "oldestPendingAt": "2030-01-31T08:00:00.000Z",
                     *           "running": 1,
                     *           "workers": 2
                     *         }
                     *       ],
                     *       "next": null
                     *     }
                     */
                    "application/json": components["schemas"]["QueuePage"];
                };
            };
            401: components["responses"]["unauthorized"];
            422: components["responses"]["invalid_input"];
            503: components["responses"]["unavailable"];
            /** @description A problem: the request was not carried out, or not wholly. */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    putQueue: {
        parameters: {
            query?: never;
            header?: {
                /** @description An `etag` of the queue, or several: while it has none of them nothing is changed. */
                "If-Match"?: string;
            };
            path: {
                /** @description Of any queue. */
                name: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "paused": true,
                 *       "reason": "the database is moving"
                 *     }
                 */
                "application/json": components["schemas"]["PutQueue"];
            };
        };
        responses: {
            /** @description The queue is as it was asked to be. */
            200: {
                headers: {
                    /** @description Its `etag`. */
                    ETag?: string;
                    "Audit-Receipt": components["headers"]["AuditReceipt"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "name": "default",
                     *       "paused": {
                     *         "at": "2030-01-31T08:00:00.000Z",
                     *         "by": "tok_01h455vb4pex5vsknk084sn02q",
                     *         "byName": "admin",
                     *         "reason": "the database is moving"
                     *       },
                     *       "etag": "\"0f4c1d9a6f0b5f4f6f1f6a1f3f0e9a77\"",
                     *       "depth": 3,
                     *       "depthIsEstimate": false,
                     *       "oldestPendingAt": "2030-01-31T08:00:00.000Z",
                     *       "running": 1,
                     *       "workers": 2
                     *     }
                     */
                    "application/json": components["schemas"]["Queue"];
                };
            };
            400: components["responses"]["malformed_request"];
            401: components["responses"]["unauthorized"];
            403: components["responses"]["forbidden"];
            404: components["responses"]["not_found"];
            412: components["responses"]["precondition_failed"];
            413: components["responses"]["body_too_large"];
            415: components["responses"]["unsupported_media_type"];
            422: components["responses"]["invalid_input"];
            503: components["responses"]["unavailable"];
            /** @description A problem: the request was not carried out, or not wholly. */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    getRetention: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description So long. */
            200: {
                headers: {
                    /** @description Its `etag`. */
                    ETag?: string;
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "retention": "14d",
                     *       "isDefault": false,
                     *       "etag": "\"1209600000\""
                     *     }
                     */
                    "application/json": components["schemas"]["Retention"];
                };
            };
            401: components["responses"]["unauthorized"];
            503: components["responses"]["unavailable"];
            /** @description A problem: the request was not carried out, or not wholly. */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    putRetention: {
        parameters: {
            query?: never;
            header?: {
                /** @description An `etag` of the retention, or several: while it has none of them nothing is changed. */
                "If-Match"?: string;
            };
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "retention": "14d"
                 *     }
                 */
                "application/json": components["schemas"]["PutRetention"];
            };
        };
        responses: {
            /** @description Ended runs are kept so long from now on. */
            200: {
                headers: {
                    /** @description Its `etag`. */
                    ETag?: string;
                    "Audit-Receipt": components["headers"]["AuditReceipt"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "retention": "14d",
                     *       "isDefault": false,
                     *       "etag": "\"1209600000\""
                     *     }
                     */
                    "application/json": components["schemas"]["Retention"];
                };
            };
            400: components["responses"]["malformed_request"];
            401: components["responses"]["unauthorized"];
            412: components["responses"]["precondition_failed"];
            413: components["responses"]["body_too_large"];
            415: components["responses"]["unsupported_media_type"];
            422: components["responses"]["invalid_input"];
            503: components["responses"]["unavailable"];
            /** @description A problem: the request was not carried out, or not wholly. */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    listRuns: {
        parameters: {
            query?: {
                /** @description Any of these: repeated, or a comma list. */
                state?: ("held" | "pending" | "claimed" | "running" | "parked" | "succeeded" | "failed" | "canceled" | "timed_out" | "interrupted" | "rejected")[] | string;
                /** @description What executes them. */
                kind?: "noop" | "command" | "script" | "http";
                /** @description The queue they are in. */
                queue?: string;
                /** @description What launched them. */
                origin?: "api" | "schedule" | "trigger" | "parent";
                /** @description All of these: `key:value`. */
                label?: string[] | string;
                /** @description The id of the token that made them. */
                principal?: string;
                /** @description The id of the run whose children they are. */
                parent?: string;
                /** @description All of these words are words of the name, in any case and order. */
                q?: string;
                /** @description Made later than this. */
                createdAfter?: string;
                /** @description Made earlier than this. */
                createdBefore?: string;
                /** @description How many there are on a page at most. */
                limit?: number;
                /** @description `next` of the page before, with the same filters. */
                cursor?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description A page. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "items": [
                     *         {
                     *           "id": "run_01h455vb4pex5vsknk084sn02q",
                     *           "organizationId": "org_01h455vb4pex5vsknk084sn02q",
                     *           "kind": "command",
                     *           "name": "nightly backup",
                     *           "queue": "default",
                     *           "priority": 0,
                     *           "labels": {
                     *             "env": "prod"
                     *           },
                     *           "timeout": "15m",
                     *           "notBefore": null,
                     *           "state": "failed",
                     *           "origin": "api",
                     *           "principal": {
                     *             "type": "token",
                     *             "id": "tok_01h455vb4pex5vsknk084sn02q",
                     *             "name": "admin"
                     *           },
                     *           "parentId": null,
                     *           "rootId": "run_01h455vb4pex5vsknk084sn02q",
                     *           "rerunOf": null,
                     *           "createdAt": "2030-01-31T08:00:00.000Z",
                     *           "claimedAt": "2030-01-31T08:00:00.012Z",
                     *           "startedAt": "2030-01-31T08:00:00.034Z",
                     *           "endedAt": "2030-01-31T08:00:12.345Z",
                     *           "fence": 1,
                     *           "worker": {
                     *             "id": "wrk_01h455vb4pex5vsknk084sn02q",
                     *             "name": "r1",
                     *             "leaseUntil": null
                     *           },
                     *           "cancelRequestedAt": null,
                     *           "progress": null,
                     *           "end": {
                     *             "code": "tool_failed",
                     *             "kind": null,
                     *             "detail": "exit code 7",
                     *             "exitCode": 7,
                     *             "signal": null,
                     *             "by": "wrk_01h455vb4pex5vsknk084sn02q",
                     *             "at": "2030-01-31T08:00:12.345Z",
                     *             "fence": 1
                     *           },
                     *           "receipts": {
                     *             "submitted": "org_01h455vb4pex5vsknk084sn02q:7:5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f",
                     *             "ended": "org_01h455vb4pex5vsknk084sn02q:7:5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f"
                     *           }
                     *         }
                     *       ],
                     *       "next": null
                     *     }
                     */
                    "application/json": components["schemas"]["RunPage"];
                };
            };
            401: components["responses"]["unauthorized"];
            422: components["responses"]["invalid_input"];
            503: components["responses"]["unavailable"];
            /** @description A problem: the request was not carried out, or not wholly. */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    submitRun: {
        parameters: {
            query?: never;
            header?: {
                /** @description W3C Trace Context: kept on the run. */
                traceparent?: string;
                /** @description `wait=N` answers when the run has ended or N seconds (1 to 60) passed, with the run as it is then; the answer says so in `Preference-Applied`. */
                Prefer?: string;
                /** @description The same request with the same key gives the same run, however often it is sent. */
                "Idempotency-Key"?: string;
            };
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["Submit"];
            };
        };
        responses: {
            /** @description The run that the same request made before. */
            200: {
                headers: {
                    "Audit-Receipt": components["headers"]["AuditReceipt"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "id": "run_01h455vb4pex5vsknk084sn02q",
                     *       "organizationId": "org_01h455vb4pex5vsknk084sn02q",
                     *       "kind": "command",
                     *       "name": "nightly backup",
                     *       "queue": "default",
                     *       "priority": 0,
                     *       "labels": {
                     *         "env": "prod"
                     *       },
                     *       "timeout": "15m",
                     *       "notBefore": null,
                     *       "state": "failed",
                     *       "origin": "api",
                     *       "principal": {
                     *         "type": "token",
                     *         "id": "tok_01h455vb4pex5vsknk084sn02q",
                     *         "name": "admin"
                     *       },
                     *       "parentId": null,
                     *       "rootId": "run_01h455vb4pex5vsknk084sn02q",
                     *       "rerunOf": null,
                     *       "createdAt": "2030-01-31T08:00:00.000Z",
                     *       "claimedAt": "2030-01-31T08:00:00.012Z",
                     *       "startedAt": "2030-01-31T08:00:00.034Z",
                     *       "endedAt": "2030-01-31T08:00:12.345Z",
                     *       "fence": 1,
                     *       "worker": {
                     *         "id": "wrk_01h455vb4pex5vsknk084sn02q",
                     *         "name": "r1",
                     *         "leaseUntil": null
                     *       },
                     *       "cancelRequestedAt": null,
                     *       "progress": null,
                     *       "end": {
                     *         "code": "tool_failed",
                     *         "kind": null,
                     *         "detail": "exit code 7",
                     *         "exitCode": 7,
                     *         "signal": null,
                     *         "by": "wrk_01h455vb4pex5vsknk084sn02q",
                     *         "at": "2030-01-31T08:00:12.345Z",
                     *         "fence": 1
                     *       },
                     *       "receipts": {
                     *         "submitted": "org_01h455vb4pex5vsknk084sn02q:7:5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f",
                     *         "ended": "org_01h455vb4pex5vsknk084sn02q:7:5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f"
                     *       },
                     *       "spec": {
                     *         "argv": [
                     *           "pg_dump",
                     *           "-Fc",
                     *           "app"
                     *         ],
                     *         "env": {},
                     *         "cwd": null,
                     *         "stdin": null,
                     *         "successCodes": [
                     *           0
                     *         ]
                     *       },
                     *       "output": null
                     *     }
                     */
                    "application/json": components["schemas"]["Run"];
                };
            };
            /** @description The run was made. */
            201: {
                headers: {
                    "Audit-Receipt": components["headers"]["AuditReceipt"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "id": "run_01h455vb4pex5vsknk084sn02q",
                     *       "organizationId": "org_01h455vb4pex5vsknk084sn02q",
                     *       "kind": "command",
                     *       "name": "nightly backup",
                     *       "queue": "default",
                     *       "priority": 0,
                     *       "labels": {
                     *         "env": "prod"
                     *       },
                     *       "timeout": "15m",
                     *       "notBefore": null,
                     *       "state": "failed",
                     *       "origin": "api",
                     *       "principal": {
                     *         "type": "token",
                     *         "id": "tok_01h455vb4pex5vsknk084sn02q",
                     *         "name": "admin"
                     *       },
                     *       "parentId": null,
                     *       "rootId": "run_01h455vb4pex5vsknk084sn02q",
                     *       "rerunOf": null,
                     *       "createdAt": "2030-01-31T08:00:00.000Z",
                     *       "claimedAt": "2030-01-31T08:00:00.012Z",
                     *       "startedAt": "2030-01-31T08:00:00.034Z",
                     *       "endedAt": "2030-01-31T08:00:12.345Z",
                     *       "fence": 1,
                     *       "worker": {
                     *         "id": "wrk_01h455vb4pex5vsknk084sn02q",
                     *         "name": "r1",
                     *         "leaseUntil": null
                     *       },
                     *       "cancelRequestedAt": null,
                     *       "progress": null,
                     *       "end": {
                     *         "code": "tool_failed",
                     *         "kind": null,
                     *         "detail": "exit code 7",
                     *         "exitCode": 7,
                     *         "signal": null,
                     *         "by": "wrk_01h455vb4pex5vsknk084sn02q",
                     *         "at": "2030-01-31T08:00:12.345Z",
                     *         "fence": 1
                     *       },
                     *       "receipts": {
                     *         "submitted": "org_01h455vb4pex5vsknk084sn02q:7:5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f",
                     *         "ended": "org_01h455vb4pex5vsknk084sn02q:7:5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f"
                     *       },
                     *       "spec": {
                     *         "argv": [
                     *           "pg_dump",
                     *           "-Fc",
                     *           "app"
                     *         ],
                     *         "env": {},
                     *         "cwd": null,
                     *         "stdin": null,
                     *         "successCodes": [
                     *           0
                     *         ]
                     *       },
                     *       "output": null
                     *     }
                     */
                    "application/json": components["schemas"]["Run"];
                };
            };
            400: components["responses"]["malformed_request.idempotency_key_invalid"];
            401: components["responses"]["unauthorized"];
            409: components["responses"]["id_conflict"];
            410: components["responses"]["run_removed"];
            413: components["responses"]["body_too_large"];
            415: components["responses"]["unsupported_media_type"];
            422: components["responses"]["invalid_input.idempotency_key_reused"];
            503: components["responses"]["unavailable"];
            /** @description A problem: the request was not carried out, or not wholly. */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    submitRuns: {
        parameters: {
            query?: never;
            header?: {
                /** @description W3C Trace Context: kept on the runs. */
                traceparent?: string;
                /** @description Of the whole request. Kept until 7 days after the last of its runs ended. */
                "Idempotency-Key"?: string;
            };
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["Batch"];
            };
        };
        responses: {
            /** @description At least one run was taken. */
            200: {
                headers: {
                    "Audit-Receipt": components["headers"]["AuditReceipt"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "items": [
                     *         {
                     *           "status": 201
                     *         }
                     *       ]
                     *     }
                     */
                    "application/json": components["schemas"]["BatchAnswer"];
                };
            };
            400: components["responses"]["malformed_request.idempotency_key_invalid"];
            401: components["responses"]["unauthorized"];
            410: components["responses"]["run_removed"];
            413: components["responses"]["body_too_large"];
            415: components["responses"]["unsupported_media_type"];
            /** @description No run was taken. */
            422: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "items": [
                     *         {
                     *           "status": 422,
                     *           "problem": {
                     *             "type": "urn:capstan:problem:invalid_input",
                     *             "title": "The input is invalid",
                     *             "status": 422,
                     *             "detail": "/spec/argv: must have at least one item: the program",
                     *             "code": "invalid_input",
                     *             "errors": [
                     *               {
                     *                 "pointer": "/spec/argv",
                     *                 "message": "must have at least one item: the program"
                     *               }
                     *             ],
                     *             "requestId": "req_01h455vb4pex5vsknk084sn02q"
                     *           }
                     *         }
                     *       ]
                     *     }
                     */
                    "application/json": components["schemas"]["BatchAnswer"];
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            503: components["responses"]["unavailable"];
            /** @description A problem: the request was not carried out, or not wholly. */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    cancelRuns: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["BulkCancel"];
            };
        };
        responses: {
            /** @description What was done. */
            200: {
                headers: {
                    "Audit-Receipt": components["headers"]["AuditReceipt"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "dryRun": false,
                     *       "matched": 1,
                     *       "next": null,
                     *       "canceled": 1,
                     *       "stopping": 1
                     *     }
                     */
                    "application/json": components["schemas"]["BulkCancelAnswer"];
                };
            };
            400: components["responses"]["malformed_request"];
            401: components["responses"]["unauthorized"];
            413: components["responses"]["body_too_large"];
            415: components["responses"]["unsupported_media_type"];
            422: components["responses"]["invalid_input"];
            503: components["responses"]["unavailable"];
            /** @description A problem: the request was not carried out, or not wholly. */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    rerunRuns: {
        parameters: {
            query?: never;
            header?: {
                /** @description W3C Trace Context: kept on the runs. */
                traceparent?: string;
                /** @description Of the whole request. Kept until 7 days after the last of its runs ended. */
                "Idempotency-Key"?: string;
            };
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["BulkRerun"];
            };
        };
        responses: {
            /** @description What was made. */
            200: {
                headers: {
                    "Audit-Receipt": components["headers"]["AuditReceipt"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "dryRun": false,
                     *       "matched": 1,
                     *       "next": null,
                     *       "items": [
                     *         {
                     *           "rerunOf": "run_01h455vb4pex5vsknk084sn02q",
                     *           "id": "run_01hx2ew2hde8g8njcz5w3mrv6k"
                     *         }
                     *       ]
                     *     }
                     */
                    "application/json": components["schemas"]["BulkRerunAnswer"];
                };
            };
            400: components["responses"]["malformed_request.idempotency_key_invalid"];
            401: components["responses"]["unauthorized"];
            410: components["responses"]["run_removed"];
            413: components["responses"]["body_too_large"];
            415: components["responses"]["unsupported_media_type"];
            422: components["responses"]["invalid_input.idempotency_key_reused"];
            503: components["responses"]["unavailable"];
            /** @description A problem: the request was not carried out, or not wholly. */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    getRun: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The run: `run_…` or a UUID. */
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The run. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "id": "run_01h455vb4pex5vsknk084sn02q",
                     *       "organizationId": "org_01h455vb4pex5vsknk084sn02q",
                     *       "kind": "command",
                     *       "name": "nightly backup",
                     *       "queue": "default",
                     *       "priority": 0,
                     *       "labels": {
                     *         "env": "prod"
                     *       },
                     *       "timeout": "15m",
                     *       "notBefore": null,
                     *       "state": "failed",
                     *       "origin": "api",
                     *       "principal": {
                     *         "type": "token",
                     *         "id": "tok_01h455vb4pex5vsknk084sn02q",
                     *         "name": "admin"
                     *       },
                     *       "parentId": null,
                     *       "rootId": "run_01h455vb4pex5vsknk084sn02q",
                     *       "rerunOf": null,
                     *       "createdAt": "2030-01-31T08:00:00.000Z",
                     *       "claimedAt": "2030-01-31T08:00:00.012Z",
                     *       "startedAt": "2030-01-31T08:00:00.034Z",
                     *       "endedAt": "2030-01-31T08:00:12.345Z",
                     *       "fence": 1,
                     *       "worker": {
                     *         "id": "wrk_01h455vb4pex5vsknk084sn02q",
                     *         "name": "r1",
                     *         "leaseUntil": null
                     *       },
                     *       "cancelRequestedAt": null,
                     *       "progress": null,
                     *       "end": {
                     *         "code": "tool_failed",
                     *         "kind": null,
                     *         "detail": "exit code 7",
                     *         "exitCode": 7,
                     *         "signal": null,
                     *         "by": "wrk_01h455vb4pex5vsknk084sn02q",
                     *         "at": "2030-01-31T08:00:12.345Z",
                     *         "fence": 1
                     *       },
                     *       "receipts": {
                     *         "submitted": "org_01h455vb4pex5vsknk084sn02q:7:5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f",
                     *         "ended": "org_01h455vb4pex5vsknk084sn02q:7:5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f"
                     *       },
                     *       "spec": {
                     *         "argv": [
                     *           "pg_dump",
                     *           "-Fc",
                     *           "app"
                     *         ],
                     *         "env": {},
                     *         "cwd": null,
                     *         "stdin": null,
                     *         "successCodes": [
                     *           0
                     *         ]
                     *       },
                     *       "output": null
                     *     }
                     */
                    "application/json": components["schemas"]["Run"];
                };
            };
            401: components["responses"]["unauthorized"];
            404: components["responses"]["not_found"];
            503: components["responses"]["unavailable"];
            /** @description A problem: the request was not carried out, or not wholly. */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    cancelRun: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The run: `run_…` or a UUID. */
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The run has ended canceled. */
            200: {
                headers: {
                    "Audit-Receipt": components["headers"]["AuditReceipt"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "id": "run_01h455vb4pex5vsknk084sn02q",
                     *       "organizationId": "org_01h455vb4pex5vsknk084sn02q",
                     *       "kind": "command",
                     *       "name": "nightly backup",
                     *       "queue": "default",
                     *       "priority": 0,
                     *       "labels": {
                     *         "env": "prod"
                     *       },
                     *       "timeout": "15m",
                     *       "notBefore": null,
                     *       "state": "failed",
                     *       "origin": "api",
                     *       "principal": {
                     *         "type": "token",
                     *         "id": "tok_01h455vb4pex5vsknk084sn02q",
                     *         "name": "admin"
                     *       },
                     *       "parentId": null,
                     *       "rootId": "run_01h455vb4pex5vsknk084sn02q",
                     *       "rerunOf": null,
                     *       "createdAt": "2030-01-31T08:00:00.000Z",
                     *       "claimedAt": "2030-01-31T08:00:00.012Z",
                     *       "startedAt": "2030-01-31T08:00:00.034Z",
                     *       "endedAt": "2030-01-31T08:00:12.345Z",
                     *       "fence": 1,
                     *       "worker": {
                     *         "id": "wrk_01h455vb4pex5vsknk084sn02q",
                     *         "name": "r1",
                     *         "leaseUntil": null
                     *       },
                     *       "cancelRequestedAt": null,
                     *       "progress": null,
                     *       "end": {
                     *         "code": "tool_failed",
                     *         "kind": null,
                     *         "detail": "exit code 7",
                     *         "exitCode": 7,
                     *         "signal": null,
                     *         "by": "wrk_01h455vb4pex5vsknk084sn02q",
                     *         "at": "2030-01-31T08:00:12.345Z",
                     *         "fence": 1
                     *       },
                     *       "receipts": {
                     *         "submitted": "org_01h455vb4pex5vsknk084sn02q:7:5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f",
                     *         "ended": "org_01h455vb4pex5vsknk084sn02q:7:5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f"
                     *       },
                     *       "spec": {
                     *         "argv": [
                     *           "pg_dump",
                     *           "-Fc",
                     *           "app"
                     *         ],
                     *         "env": {},
                     *         "cwd": null,
                     *         "stdin": null,
                     *         "successCodes": [
                     *           0
                     *         ]
                     *       },
                     *       "output": null
                     *     }
                     */
                    "application/json": components["schemas"]["Run"];
                };
            };
            /** @description Its holder still has to stop the tool. */
            202: {
                headers: {
                    "Audit-Receipt": components["headers"]["AuditReceipt"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "id": "run_01h455vb4pex5vsknk084sn02q",
                     *       "organizationId": "org_01h455vb4pex5vsknk084sn02q",
                     *       "kind": "command",
                     *       "name": "nightly backup",
                     *       "queue": "default",
                     *       "priority": 0,
                     *       "labels": {
                     *         "env": "prod"
                     *       },
                     *       "timeout": "15m",
                     *       "notBefore": null,
                     *       "state": "failed",
                     *       "origin": "api",
                     *       "principal": {
                     *         "type": "token",
                     *         "id": "tok_01h455vb4pex5vsknk084sn02q",
                     *         "name": "admin"
                     *       },
                     *       "parentId": null,
                     *       "rootId": "run_01h455vb4pex5vsknk084sn02q",
                     *       "rerunOf": null,
                     *       "createdAt": "2030-01-31T08:00:00.000Z",
                     *       "claimedAt": "2030-01-31T08:00:00.012Z",
                     *       "startedAt": "2030-01-31T08:00:00.034Z",
                     *       "endedAt": "2030-01-31T08:00:12.345Z",
                     *       "fence": 1,
                     *       "worker": {
                     *         "id": "wrk_01h455vb4pex5vsknk084sn02q",
                     *         "name": "r1",
                     *         "leaseUntil": null
                     *       },
                     *       "cancelRequestedAt": null,
                     *       "progress": null,
                     *       "end": {
                     *         "code": "tool_failed",
                     *         "kind": null,
                     *         "detail": "exit code 7",
                     *         "exitCode": 7,
                     *         "signal": null,
                     *         "by": "wrk_01h455vb4pex5vsknk084sn02q",
                     *         "at": "2030-01-31T08:00:12.345Z",
                     *         "fence": 1
                     *       },
                     *       "receipts": {
                     *         "submitted": "org_01h455vb4pex5vsknk084sn02q:7:5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f",
                     *         "ended": "org_01h455vb4pex5vsknk084sn02q:7:5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f"
                     *       },
                     *       "spec": {
                     *         "argv": [
                     *           "pg_dump",
                     *           "-Fc",
                     *           "app"
                     *         ],
                     *         "env": {},
                     *         "cwd": null,
                     *         "stdin": null,
                     *         "successCodes": [
                     *           0
                     *         ]
                     *       },
                     *       "output": null
                     *     }
                     */
                    "application/json": components["schemas"]["Run"];
                };
            };
            401: components["responses"]["unauthorized"];
            404: components["responses"]["not_found"];
            409: components["responses"]["run_ended"];
            503: components["responses"]["unavailable"];
            /** @description A problem: the request was not carried out, or not wholly. */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    listRunEvents: {
        parameters: {
            query?: {
                /** @description How many there are on a page at most. */
                limit?: number;
                /** @description `next` of the page before. */
                cursor?: string;
            };
            header?: never;
            path: {
                /** @description The run: `run_…` or a UUID. */
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description A page. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "items": [
                     *         {
                     *           "seq": null,
                     *           "type": "run.started",
                     *           "at": "2030-01-31T08:00:00.000Z",
                     *           "data": {
                     *             "worker": "wrk_01h455vb4pex5vsknk084sn02q"
                     *           }
                     *         }
                     *       ],
                     *       "next": null
                     *     }
                     */
                    "application/json": components["schemas"]["EventPage"];
                };
            };
            401: components["responses"]["unauthorized"];
            404: components["responses"]["not_found"];
            422: components["responses"]["invalid_input"];
            503: components["responses"]["unavailable"];
            /** @description A problem: the request was not carried out, or not wholly. */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    getRunOutput: {
        parameters: {
            query?: {
                /** @description Output of one stream alone. */
                stream?: "stdout" | "stderr";
                /** @description Of the output that is there already only the last so many lines. */
                tail?: number;
            };
            header?: {
                /** @description One range of bytes. */
                Range?: string;
            };
            path: {
                /** @description The run: `run_…` or a UUID. */
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description All of it. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "text/plain": string;
                };
            };
            /** @description The part asked for. */
            206: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "text/plain": string;
                };
            };
            401: components["responses"]["unauthorized"];
            404: components["responses"]["not_found"];
            416: components["responses"]["range_not_satisfiable"];
            422: components["responses"]["invalid_input"];
            503: components["responses"]["unavailable"];
            /** @description A problem: the request was not carried out, or not wholly. */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    rerunRun: {
        parameters: {
            query?: never;
            header?: {
                /** @description W3C Trace Context: kept on the run. */
                traceparent?: string;
                /** @description `wait=N` answers when the run has ended or N seconds (1 to 60) passed, with the run as it is then; the answer says so in `Preference-Applied`. */
                Prefer?: string;
                /** @description The same request with the same key gives the same run, however often it is sent. */
                "Idempotency-Key"?: string;
            };
            path: {
                /** @description The run: `run_…` or a UUID. */
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The run that the same request made before. */
            200: {
                headers: {
                    "Audit-Receipt": components["headers"]["AuditReceipt"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "id": "run_01h455vb4pex5vsknk084sn02q",
                     *       "organizationId": "org_01h455vb4pex5vsknk084sn02q",
                     *       "kind": "command",
                     *       "name": "nightly backup",
                     *       "queue": "default",
                     *       "priority": 0,
                     *       "labels": {
                     *         "env": "prod"
                     *       },
                     *       "timeout": "15m",
                     *       "notBefore": null,
                     *       "state": "failed",
                     *       "origin": "api",
                     *       "principal": {
                     *         "type": "token",
                     *         "id": "tok_01h455vb4pex5vsknk084sn02q",
                     *         "name": "admin"
                     *       },
                     *       "parentId": null,
                     *       "rootId": "run_01h455vb4pex5vsknk084sn02q",
                     *       "rerunOf": null,
                     *       "createdAt": "2030-01-31T08:00:00.000Z",
                     *       "claimedAt": "2030-01-31T08:00:00.012Z",
                     *       "startedAt": "2030-01-31T08:00:00.034Z",
                     *       "endedAt": "2030-01-31T08:00:12.345Z",
                     *       "fence": 1,
                     *       "worker": {
                     *         "id": "wrk_01h455vb4pex5vsknk084sn02q",
                     *         "name": "r1",
                     *         "leaseUntil": null
                     *       },
                     *       "cancelRequestedAt": null,
                     *       "progress": null,
                     *       "end": {
                     *         "code": "tool_failed",
                     *         "kind": null,
                     *         "detail": "exit code 7",
                     *         "exitCode": 7,
                     *         "signal": null,
                     *         "by": "wrk_01h455vb4pex5vsknk084sn02q",
                     *         "at": "2030-01-31T08:00:12.345Z",
                     *         "fence": 1
                     *       },
                     *       "receipts": {
                     *         "submitted": "org_01h455vb4pex5vsknk084sn02q:7:5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f",
                     *         "ended": "org_01h455vb4pex5vsknk084sn02q:7:5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f"
                     *       },
                     *       "spec": {
                     *         "argv": [
                     *           "pg_dump",
                     *           "-Fc",
                     *           "app"
                     *         ],
                     *         "env": {},
                     *         "cwd": null,
                     *         "stdin": null,
                     *         "successCodes": [
                     *           0
                     *         ]
                     *       },
                     *       "output": null
                     *     }
                     */
                    "application/json": components["schemas"]["Run"];
                };
            };
            /** @description The new run. */
            201: {
                headers: {
                    "Audit-Receipt": components["headers"]["AuditReceipt"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "id": "run_01h455vb4pex5vsknk084sn02q",
                     *       "organizationId": "org_01h455vb4pex5vsknk084sn02q",
                     *       "kind": "command",
                     *       "name": "nightly backup",
                     *       "queue": "default",
                     *       "priority": 0,
                     *       "labels": {
                     *         "env": "prod"
                     *       },
                     *       "timeout": "15m",
                     *       "notBefore": null,
                     *       "state": "failed",
                     *       "origin": "api",
                     *       "principal": {
                     *         "type": "token",
                     *         "id": "tok_01h455vb4pex5vsknk084sn02q",
                     *         "name": "admin"
                     *       },
                     *       "parentId": null,
                     *       "rootId": "run_01h455vb4pex5vsknk084sn02q",
                     *       "rerunOf": null,
                     *       "createdAt": "2030-01-31T08:00:00.000Z",
                     *       "claimedAt": "2030-01-31T08:00:00.012Z",
                     *       "startedAt": "2030-01-31T08:00:00.034Z",
                     *       "endedAt": "2030-01-31T08:00:12.345Z",
                     *       "fence": 1,
                     *       "worker": {
                     *         "id": "wrk_01h455vb4pex5vsknk084sn02q",
                     *         "name": "r1",
                     *         "leaseUntil": null
                     *       },
                     *       "cancelRequestedAt": null,
                     *       "progress": null,
                     *       "end": {
                     *         "code": "tool_failed",
                     *         "kind": null,
                     *         "detail": "exit code 7",
                     *         "exitCode": 7,
                     *         "signal": null,
                     *         "by": "wrk_01h455vb4pex5vsknk084sn02q",
                     *         "at": "2030-01-31T08:00:12.345Z",
                     *         "fence": 1
                     *       },
                     *       "receipts": {
                     *         "submitted": "org_01h455vb4pex5vsknk084sn02q:7:5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f",
                     *         "ended": "org_01h455vb4pex5vsknk084sn02q:7:5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f"
                     *       },
                     *       "spec": {
                     *         "argv": [
                     *           "pg_dump",
                     *           "-Fc",
                     *           "app"
                     *         ],
                     *         "env": {},
                     *         "cwd": null,
                     *         "stdin": null,
                     *         "successCodes": [
                     *           0
                     *         ]
                     *       },
                     *       "output": null
                     *     }
                     */
                    "application/json": components["schemas"]["Run"];
                };
            };
            400: components["responses"]["idempotency_key_invalid"];
            401: components["responses"]["unauthorized"];
            404: components["responses"]["not_found"];
            409: components["responses"]["run_not_ended"];
            410: components["responses"]["run_removed"];
            422: components["responses"]["idempotency_key_reused"];
            503: components["responses"]["unavailable"];
            /** @description A problem: the request was not carried out, or not wholly. */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    streamRun: {
        parameters: {
            query?: {
                /** @description Output of one stream alone. */
                stream?: "stdout" | "stderr";
                /** @description Of the output that is there already only the last so many lines. */
                tail?: number;
            };
            header?: {
                /** @description `seq.fence.batch`: the id of the last message that was taken. */
                "Last-Event-ID"?: string;
            };
            path: {
                /** @description The run: `run_…` or a UUID. */
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The messages, up to `end`. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "text/event-stream": string;
                };
            };
            400: components["responses"]["malformed_request"];
            401: components["responses"]["unauthorized"];
            404: components["responses"]["not_found"];
            422: components["responses"]["invalid_input"];
            429: components["responses"]["too_many_streams"];
            503: components["responses"]["unavailable"];
            /** @description A problem: the request was not carried out, or not wholly. */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    whyRun: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The run: `run_…` or a UUID. */
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The reasons; none when the next claim takes it. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "id": "run_01h455vb4pex5vsknk084sn02q",
                     *       "state": "pending",
                     *       "queue": "default",
                     *       "isClaimable": false,
                     *       "reasons": [
                     *         {
                     *           "code": "queue_paused",
                     *           "detail": "queue default is paused: the database is moving",
                     *           "remedy": "an admin of the installation resumes it",
                     *           "until": null
                     *         }
                     *       ]
                     *     }
                     */
                    "application/json": components["schemas"]["Why"];
                };
            };
            401: components["responses"]["unauthorized"];
            404: components["responses"]["not_found"];
            503: components["responses"]["unavailable"];
            /** @description A problem: the request was not carried out, or not wholly. */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    getVersion: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Product, schema and replica. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "name": "capstan",
                     *       "version": "0.1.0",
                     *       "schema": "0007_lists",
                     *       "node": "20.19.2",
                     *       "replica": {
                     *         "name": "r1",
                     *         "id": "wrk_01h455vb4pex5vsknk084sn02q"
                     *       }
                     *     }
                     */
                    "application/json": components["schemas"]["Version"];
                };
            };
            401: components["responses"]["unauthorized"];
            503: components["responses"]["unavailable"];
            /** @description A problem: the request was not carried out, or not wholly. */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    listWorkers: {
        parameters: {
            query?: {
                /** @description How many there are on a page at most. */
                limit?: number;
                /** @description `next` of the page before. */
                cursor?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description A page. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "items": [
                     *         {
                     *           "id": "wrk_01h455vb4pex5vsknk084sn02q",
                     *           "name": "r1",
                     *           "kind": "replica",
                     *           "state": "live",
                     *           "slots": 4,
                     *           "queues": [
                     *             "default"
                     *           ],
                     *           "version": "0.1.0",
                     *           "leaseUntil": "2030-01-31T08:00:00.000Z",
                     *           "seenAt": "2030-01-31T08:00:00.000Z",
                     *           "connected": true,
                     *           "running": 1,
                     *           "startedAt": "2030-01-31T08:00:00.000Z",
                     *           "endedAt": null
                     *         }
                     *       ],
                     *       "next": null
                     *     }
                     */
                    "application/json": components["schemas"]["WorkerPage"];
                };
            };
            401: components["responses"]["unauthorized"];
            422: components["responses"]["invalid_input"];
            503: components["responses"]["unavailable"];
            /** @description A problem: the request was not carried out, or not wholly. */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    getWorker: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The worker: `wrk_…` or a UUID. */
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The worker. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "id": "wrk_01h455vb4pex5vsknk084sn02q",
                     *       "name": "r1",
                     *       "kind": "replica",
                     *       "state": "live",
                     *       "slots": 4,
                     *       "queues": [
                     *         "default"
                     *       ],
                     *       "version": "0.1.0",
                     *       "leaseUntil": "2030-01-31T08:00:00.000Z",
                     *       "seenAt": "2030-01-31T08:00:00.000Z",
                     *       "connected": true,
                     *       "running": 1,
                     *       "startedAt": "2030-01-31T08:00:00.000Z",
                     *       "endedAt": null
                     *     }
                     */
                    "application/json": components["schemas"]["Worker"];
                };
            };
            401: components["responses"]["unauthorized"];
            404: components["responses"]["not_found"];
            503: components["responses"]["unavailable"];
            /** @description A problem: the request was not carried out, or not wholly. */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    drainWorker: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The worker: `wrk_…` or a UUID. */
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The worker is draining. */
            200: {
                headers: {
                    "Audit-Receipt": components["headers"]["AuditReceipt"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "id": "wrk_01h455vb4pex5vsknk084sn02q",
                     *       "name": "r1",
                     *       "kind": "replica",
                     *       "state": "live",
                     *       "slots": 4,
                     *       "queues": [
                     *         "default"
                     *       ],
                     *       "version": "0.1.0",
                     *       "leaseUntil": "2030-01-31T08:00:00.000Z",
                     *       "seenAt": "2030-01-31T08:00:00.000Z",
                     *       "connected": true,
                     *       "running": 1,
                     *       "startedAt": "2030-01-31T08:00:00.000Z",
                     *       "endedAt": null
                     *     }
                     */
                    "application/json": components["schemas"]["Worker"];
                };
            };
            401: components["responses"]["unauthorized"];
            403: components["responses"]["forbidden"];
            404: components["responses"]["not_found"];
            409: components["responses"]["worker_ended"];
            503: components["responses"]["unavailable"];
            /** @description A problem: the request was not carried out, or not wholly. */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    undrainWorker: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The worker: `wrk_…` or a UUID. */
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The worker takes runs. */
            200: {
                headers: {
                    "Audit-Receipt": components["headers"]["AuditReceipt"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "id": "wrk_01h455vb4pex5vsknk084sn02q",
                     *       "name": "r1",
                     *       "kind": "replica",
                     *       "state": "live",
                     *       "slots": 4,
                     *       "queues": [
                     *         "default"
                     *       ],
                     *       "version": "0.1.0",
                     *       "leaseUntil": "2030-01-31T08:00:00.000Z",
                     *       "seenAt": "2030-01-31T08:00:00.000Z",
                     *       "connected": true,
                     *       "running": 1,
                     *       "startedAt": "2030-01-31T08:00:00.000Z",
                     *       "endedAt": null
                     *     }
                     */
                    "application/json": components["schemas"]["Worker"];
                };
            };
            401: components["responses"]["unauthorized"];
            403: components["responses"]["forbidden"];
            404: components["responses"]["not_found"];
            409: components["responses"]["worker_ended.worker_stopping"];
            503: components["responses"]["unavailable"];
            /** @description A problem: the request was not carried out, or not wholly. */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
}
