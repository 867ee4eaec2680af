/** Ids on a command line. */
import { wrongUsage } from './failure.js';

/** Whether there is such a run is the server's to say; what can't be an id would only make another path. */
export function idIn(args: readonly string[]): string {
  const [id = ''] = args;
  if (/^[A-Za-z0-9_-]{1,90}$/.test(id)) return id;
  throw wrongUsage('expected the id of a run, such as run_01h455vb4pex5vsknk084sn02q');
}
