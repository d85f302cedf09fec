/** A sheet that comes down over the conversation from a button of the header, and does not move what is under it. */
import type { ComponentChildren, FunctionComponent } from "preact";
import { useEffect, useRef } from "preact/hooks";
import { Icon } from "./shown.js";

interface SheetProps {
  readonly id: string;
  readonly title: string;
  readonly onClose: () => void;
  readonly children: ComponentChildren;
}

export const Sheet: FunctionComponent<SheetProps> = ({ id, title, onClose, children }) => {
  const sheet = useRef<HTMLElement>(null);
  useEffect(() => {
    const element = sheet.current;
    const opener = document.activeElement;
    if (element !== null) {
      (element.querySelector<HTMLElement>("[data-first]") ?? element).focus();
    }
    return () => {
      // Back to the button, unless the person has gone elsewhere or it was closed by going on.
      const { activeElement } = document;
      if (opener instanceof HTMLElement && (activeElement === document.body || element?.contains(activeElement))) {
        opener.focus();
      }
    };
  }, []);
  return (
    <section id={id} ref={sheet} class="sheet" role="dialog" aria-label={title} tabIndex={-1}>
      <header>
        <h2>{title}</h2>
        <button type="button" class="icon-button" aria-label={`Close ${title}`} onClick={onClose}>
          <Icon name="close" />
        </button>
      </header>
      {children}
    </section>
  );
};
