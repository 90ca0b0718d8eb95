#include "cli/markdown.hpp"

#include <memory>

#include <cmark-gfm-core-extensions.h>
#include <cmark-gfm-extension_api.h>
#include <cmark-gfm.h>

namespace remote::cli {
namespace {

using Kind = MarkdownBlock::Kind;
using Look = MarkdownSpan::Look;
using Document = std::unique_ptr<cmark_node, decltype(&cmark_node_free)>;

std::string literal(cmark_node* node) {
  const char* const text = cmark_node_get_literal(node);
  return text == nullptr ? "" : text;
}

void add_span(Look look, std::string_view text, MarkdownText& to) {
  if (to.empty() || to.back().look != look) {
    to.push_back({look, ""});
  }
  to.back().text += text;
}

// Adds the spans of the nodes in `parent`.
void read_text(cmark_node* parent, Look look, MarkdownText& to) {
  for (cmark_node* node = cmark_node_first_child(parent); node != nullptr; node = cmark_node_next(node)) {
    const cmark_node_type type = cmark_node_get_type(node);
    if (type == CMARK_NODE_TEXT) {
      add_span(look, literal(node), to);
    } else if (type == CMARK_NODE_CODE) {
      add_span(Look::code, literal(node), to);
    } else if (type == CMARK_NODE_SOFTBREAK || type == CMARK_NODE_LINEBREAK) {
      add_span(look, " ", to);
    } else if (type == CMARK_NODE_STRONG) {
      read_text(node, Look::bold, to);
    } else if (type == CMARK_NODE_EMPH) {
      read_text(node, Look::emphasis, to);
    } else if (type == CMARK_NODE_LINK) {
      read_text(node, look, to);
      const std::string address = cmark_node_get_url(node);
      if (address.starts_with("http")) {
        add_span(look, " (" + address + ")", to);
      }
    }
  }
}

MarkdownText text_of(cmark_node* node) {
  MarkdownText text;
  read_text(node, Look::plain, text);
  return text;
}

MarkdownBlock table_of(cmark_node* table) {
  MarkdownBlock block{Kind::table};
  for (cmark_node* row = cmark_node_first_child(table); row != nullptr; row = cmark_node_next(row)) {
    auto& cells = block.rows.emplace_back();
    for (cmark_node* cell = cmark_node_first_child(row); cell != nullptr; cell = cmark_node_next(cell)) {
      cells.push_back(text_of(cell));
    }
  }
  return block;
}

// `depth`: number of lists around the parent. `mark`: the mark of an item whose first paragraph has not been
// read yet.
void read_blocks(cmark_node* parent, std::size_t depth, std::string mark, std::vector<MarkdownBlock>& to) {
  int number = cmark_node_get_type(parent) == CMARK_NODE_LIST ? cmark_node_get_list_start(parent) : 0;
  for (cmark_node* node = cmark_node_first_child(parent); node != nullptr; node = cmark_node_next(node)) {
    const cmark_node_type type = cmark_node_get_type(node);
    if (type == CMARK_NODE_HEADING) {
      to.push_back(
          {Kind::heading, static_cast<std::size_t>(cmark_node_get_heading_level(node)), text_of(node)});
    } else if (type == CMARK_NODE_PARAGRAPH) {
      if (MarkdownText text = text_of(node); !text.empty()) {
        to.push_back(mark.empty() ? MarkdownBlock{Kind::paragraph, 0, std::move(text)}
                                  : MarkdownBlock{Kind::item, depth - 1, std::move(text), mark});
        mark.clear();
      }
    } else if (type == CMARK_NODE_CODE_BLOCK) {
      to.push_back({Kind::code, 0, {{Look::code, literal(node)}}});
    } else if (type == CMARK_NODE_LIST) {
      read_blocks(node, depth + 1, "", to);
    } else if (type == CMARK_NODE_ITEM) {
      const bool ordered = cmark_node_get_list_type(parent) == CMARK_ORDERED_LIST;
      read_blocks(node, depth, ordered ? std::to_string(number++) + "." : "-", to);
    } else if (type == CMARK_NODE_BLOCK_QUOTE) {
      read_blocks(node, depth, "", to);
    } else if (std::string_view(cmark_node_get_type_string(node)) == "table") {
      to.push_back(table_of(node));
    }
  }
}

}  // namespace

std::vector<MarkdownBlock> read_markdown(std::string_view text) {
  cmark_gfm_core_extensions_ensure_registered();
  const std::unique_ptr<cmark_parser, decltype(&cmark_parser_free)> parser(
      cmark_parser_new(CMARK_OPT_DEFAULT), &cmark_parser_free);
  cmark_parser_attach_syntax_extension(parser.get(), cmark_find_syntax_extension("table"));
  cmark_parser_feed(parser.get(), text.data(), text.size());
  const Document document(cmark_parser_finish(parser.get()), &cmark_node_free);
  std::vector<MarkdownBlock> blocks;
  read_blocks(document.get(), 0, "", blocks);
  return blocks;
}

}  // namespace remote::cli
