#pragma once

#include <string>
#include <string_view>
#include <vector>

// The pages of docs/ that the program carries with it: `remote help TOPIC`.

namespace remote::cli {

struct Topic {
  std::string_view name;
  std::string_view about;    // what the page is about, a line
  std::string_view command;  // whose help names the page; "": none
};
// In the order in which they are shown.
std::vector<Topic> all_topics();
bool is_topic(std::string_view name);
// The page in Markdown. `name` must be a topic.
std::string_view topic_markdown(std::string_view name);

// A file of docs/ by its name without folders (generated). Throws std::logic_error if there is none.
std::string_view topic_file(std::string_view name);

}  // namespace remote::cli
