#include "cli/topics.hpp"

#include <algorithm>

namespace remote::cli {
namespace {

struct TopicPage {
  Topic topic;
  std::string_view file;
};

// No topic has a command's name. In the order in which they are shown.
constexpr TopicPage topic_pages[] = {
    {{"first-ten-minutes", "from nothing to a training on two servers", ""}, "first_ten_minutes.md"},
    {{"when-it-hangs", "what to look at when a launch stands still", ""}, "when_it_hangs.md"},
    {{"from-labml_remote", "what is the same, and what differs", ""}, "from_labml_remote.md"},
    {{"from-torchrun", "the line for each of torchrun's", ""}, "from_torchrun.md"},
    {{"from-slurm", "the line for each of sbatch's and srun's", ""}, "from_slurm.md"},
    {{"from-mpirun", "the line for each of mpirun's", ""}, "from_mpirun.md"},
    {{"configs", "every key of .remote/configs.yaml", "init"}, "configuration.md"},
    {{"checking", "what check looks at, and what mends it", "check"}, "check.md"},
    {{"network", "how check tries the network between the servers", "check"}, "network.md"},
    {{"watching", "the screen of top, and its keys", "top"}, "top.md"},
    {{"reports", "what a page of report shows", "report"}, "report.md"},
    {{"launchers", "which launcher for which guide's command", "launch"}, "launchers.md"},
    {{"ranks", "ranks that remote starts itself", ""}, "ranks.md"},
    {{"torchrun", "ranks that torchrun starts", ""}, "torchrun.md"},
    {{"mpi", "ranks that mpirun starts", ""}, "mpi.md"},
    {{"slurm", "servers that are login nodes of Slurm", ""}, "slurm.md"},
    {{"containers", "jobs in docker, podman or apptainer", ""}, "containers.md"},
    {{"shared-file", "ranks that find each other by a file", ""}, "shared_file.md"},
    {{"security", "whom remote trusts with what", "trust"}, "security.md"},
    {{"reliability", "what is promised, and where it ends", ""}, "reliability.md"},
    {{"jsonl", "the events of --jsonl, for programs", ""}, "jsonl.md"},
    {{"protocol", "the job folder and the lines of the scripts", ""}, "protocol.md"},
};

}  // namespace

std::vector<Topic> all_topics() {
  std::vector<Topic> all;
  for (const TopicPage& page : topic_pages) {
    all.push_back(page.topic);
  }
  return all;
}

bool is_topic(std::string_view name) {
  return std::ranges::find(topic_pages, name, [](const TopicPage& page) { return page.topic.name; }) !=
         std::end(topic_pages);
}

std::string_view topic_markdown(std::string_view name) {
  return topic_file(
      std::ranges::find(topic_pages, name, [](const TopicPage& page) { return page.topic.name; })->file);
}

}  // namespace remote::cli
