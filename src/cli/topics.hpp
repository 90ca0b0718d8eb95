#pragma once

#include <string>
#include <string_view>
#include <vector>

// The pages of docs/ that are compiled into the program: `remote help TOPIC`.

namespace remote::cli {

struct Topic {
  std::string_view name;
  std::string_view about;    // the subject of the page, one line
  std::string_view command;  // the command whose help refers to the page; "": none
};
// In display order.
std::vector<Topic> all_topics();
bool is_topic(std::string_view name);
// The page in Markdown. `name` must be a topic.
std::string_view topic_markdown(std::string_view name);

// A file of docs/, by its name without folders (generated code). Throws std::logic_error if it does not
// exist.
std::string_view topic_file(std::string_view name);

}  // namespace remote::cli
