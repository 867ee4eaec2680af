/** Who answers here: the stable name of this process, and the life it is in once it has registered. */
export class ThisReplica {
  /** TypeID (`wrk_…`) of the present life; null before the first and in a process that executes nothing. */
  workerId: string | null = null;

  constructor(readonly name: string) {}
}
