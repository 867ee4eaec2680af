/** Gets all that a tool is to find at its start, and takes back what was not used or is used no more. */
import { FifoPool, type ToolPipes } from './fifo.js';
import { dropTool, failureOf, type PreparedTool, planFault, prepareTool } from './launch.js';
import type { Places } from './places.js';
import type { LaunchFailure, ToolPlan } from './plan.js';
import { type PrivateFolder, PrivateFolders } from './private-folders.js';

/** Whoever has it spawns or drops it. */
export interface Prepared {
  readonly tool: PreparedTool;
  /** To be given back once no process of the tool is left. */
  readonly folder: PrivateFolder;
  readonly pipes: ToolPipes;
}

export class Preparer {
  readonly #fifos: FifoPool;
  readonly #folders: PrivateFolders;

  constructor({ root, pipes }: Places) {
    this.#fifos = new FifoPool(pipes, pipes !== root);
    this.#folders = new PrivateFolders(root);
  }

  /** After a failure nothing is left. */
  async prepare(plan: ToolPlan): Promise<Prepared | LaunchFailure> {
    const fault = planFault(plan);
    if (fault !== null) return { code: 'invalid_input', detail: fault };
    let act = 'make pipes';
    let pipes: ToolPipes | undefined;
    try {
      pipes = await this.#fifos.take();
      act = 'prepare the private folder';
      const folder = await this.#folders.take(plan.files);
      const tool = await prepareTool(plan, folder.path);
      if (!('code' in tool)) return { tool, folder, pipes };
      this.#fifos.giveBack(pipes);
      await this.giveBack(folder, true);
      return tool;
    } catch (error) {
      if (pipes !== undefined) this.#fifos.giveBack(pipes);
      return failureOf(error, act);
    }
  }

  /** For what was not spawned. */
  drop({ tool, folder, pipes }: Prepared): Promise<void> {
    dropTool(tool);
    this.#fifos.giveBack(pipes);
    return this.giveBack(folder, true);
  }

  /** `isSurelyLeft`: there is nobody who could have the folder open. */
  giveBack(folder: PrivateFolder, isSurelyLeft: boolean): Promise<void> {
    return this.#folders.giveBack(folder, isSurelyLeft);
  }
}
