/** The text of the agent as elements. It is data from a model: nothing of it becomes markup, and no address opens by itself. */
import { Component, type FunctionComponent } from "preact";
import { useRef } from "preact/hooks";
import { type Block, type Inline, Prose } from "./prose.js";
import { Shown } from "./shown.js";

export const Answer: FunctionComponent<{ readonly text: string }> = ({ text }) => {
  const prose = useRef<Prose>(undefined);
  prose.current ??= new Prose();
  return (
    <>
      {prose.current.read(text).map((block) => (
        <OneBlock key={block.at} block={block} />
      ))}
    </>
  );
};

/** A block that is complete is not drawn again while the text below it grows. */
class OneBlock extends Component<{ readonly block: Block }> {
  override shouldComponentUpdate(next: { readonly block: Block }): boolean {
    return next.block !== this.props.block;
  }

  override render() {
    const { block } = this.props;
    switch (block.kind) {
      case "code":
        return (
          <pre class="code" dir="ltr">
            <code>
              <Shown text={block.text} />
            </code>
          </pre>
        );
      case "list": {
        const items = block.items.map((item, at) => (
          <li key={at} dir="auto">
            <Inlines of={item} />
          </li>
        ));
        return block.start === undefined ? <ul>{items}</ul> : <ol start={block.start}>{items}</ol>;
      }
      case "heading":
        return (
          <p class="heading" dir="auto">
            <strong>
              <Inlines of={block.inlines} />
            </strong>
          </p>
        );
      default:
        return (
          <p dir="auto">
            <Inlines of={block.inlines} />
          </p>
        );
    }
  }
}

const Inlines: FunctionComponent<{ readonly of: readonly Inline[] }> = ({ of }) => (
  <>
    {of.map((inline, at) => (
      <OneInline key={at} inline={inline} />
    ))}
  </>
);

const OneInline: FunctionComponent<{ readonly inline: Inline }> = ({ inline }) => {
  switch (inline.kind) {
    case "code":
      return (
        <code dir="ltr">
          <Shown text={inline.text} />
        </code>
      );
    case "strong":
      return (
        <strong>
          <Shown text={inline.text} />
        </strong>
      );
    case "link":
      // The whole address is what is read, as the browser will open it.
      return (
        <a href={inline.url} target="_blank" rel="noopener noreferrer nofollow" referrerpolicy="no-referrer" dir="ltr">
          {inline.url}
        </a>
      );
    default:
      return <Shown text={inline.text} />;
  }
};
