// Work that many events ask for and that must not overlap.

/**
 * Runs `work` soon after a call. Calls before it begins share that run; a call while it runs has it run once more
 * afterwards. The promise of a call is that of its run.
 */
export function coalesced(work: () => Promise<void>, delay: number): () => Promise<void> {
  let waiting: Promise<void> | undefined;
  let latest: Promise<void> = Promise.resolve();
  return () => {
    if (waiting === undefined) {
      const before = latest.catch(() => undefined);
      waiting = Promise.all([before, new Promise((resolve) => setTimeout(resolve, delay))]).then(() => {
        waiting = undefined;
        return work();
      });
      latest = waiting;
    }
    return waiting;
  };
}
