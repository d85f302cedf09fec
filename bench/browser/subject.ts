/** What is measured: one way to act on a browser's tabs. */

export interface Tab {
  /** As the subject names it now. */
  readonly id: string;
  readonly url: string;
  readonly active: boolean;
}

export interface Subject {
  readonly name: string;
  /** Starts a browser of its own, with one tab. */
  start(): Promise<void>;
  /** Opens a tab of the 20, not measured. */
  prepare(url: string): Promise<void>;
  /** Returns what the subject answers, unread: reading it is not measured. */
  list(): Promise<unknown>;
  read(answer: unknown): Tab[];
  /** Opens a tab in the foreground. */
  open(url: string): Promise<unknown>;
  /** Settles once the page of the tab that was opened last has loaded; where open waits for that there is nothing to do. */
  loaded?(): Promise<void>;
  activate(tab: Tab): Promise<unknown>;
  close(tab: Tab): Promise<unknown>;
  /** What the browser has, as far as the subject lets one see it without its own list. */
  truth(): Promise<Tab[]>;
  stop(): Promise<void>;
}
