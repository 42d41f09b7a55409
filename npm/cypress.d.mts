/** Return the tasks of the commands, for `on("task", ...)`. The defaults are MAILCHECK_URL and MAILCHECK_API_KEY. */
export declare function mailcheckTasks(options?: {
  url?: string;
  key?: string;
}): Record<string, (argument: any) => Promise<any>>;
