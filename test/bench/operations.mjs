/** The child's side of `Child`: answers each message by the operation that it names; ends with its parent. */

/** @param {Record<string, (args: any) => Promise<unknown>>} operations */
export function serveOperations(operations) {
  process.on('message', async ({ id, name, args }) => {
    try {
      process.send({ id, result: await operations[name](args) });
    } catch (error) {
      process.send({ id, error: error.message });
    }
  });
  process.on('disconnect', () => process.exit());
  process.send({ ready: true });
}

/** How many jobs were handled so far; told only when it changed, so that who is idle says nothing. */
export function tellHandled(count) {
  let told = 0;
  const timer = setInterval(() => {
    if (count() === told) return;
    told = count();
    process.send({ handled: told });
  }, 20);
  return () => clearInterval(timer);
}
