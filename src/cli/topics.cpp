#include "cli/topics.hpp"

#include <algorithm>

namespace remote::cli {
namespace {

struct Topic {
  std::string_view name;
  std::string_view file;
};

// No topic has a command's name. In the order in which they are shown.
constexpr Topic topics[] = {
    {"first-ten-minutes", "first_ten_minutes.md"},
    {"when-it-hangs", "when_it_hangs.md"},
    {"from-labml_remote", "from_labml_remote.md"},
    {"from-torchrun", "from_torchrun.md"},
    {"from-slurm", "from_slurm.md"},
    {"from-mpirun", "from_mpirun.md"},
    {"configs", "configuration.md"},
    {"launchers", "launchers.md"},
    {"ranks", "ranks.md"},
    {"torchrun", "torchrun.md"},
    {"mpi", "mpi.md"},
    {"slurm", "slurm.md"},
    {"containers", "containers.md"},
    {"shared-file", "shared_file.md"},
    {"security", "security.md"},
    {"reliability", "reliability.md"},
    {"jsonl", "jsonl.md"},
    {"protocol", "protocol.md"},
};

}  // namespace

std::vector<std::string> topic_names() {
  std::vector<std::string> names;
  for (const Topic& topic : topics) {
    names.emplace_back(topic.name);
  }
  return names;
}

bool is_topic(std::string_view name) {
  return std::ranges::find(topics, name, &Topic::name) != std::end(topics);
}

std::string_view topic_markdown(std::string_view name) {
  return topic_file(std::ranges::find(topics, name, &Topic::name)->file);
}

}  // namespace remote::cli
