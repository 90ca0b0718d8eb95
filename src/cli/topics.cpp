#include "cli/topics.hpp"

#include <algorithm>

namespace remote::cli {
namespace {

struct TopicPage {
  Topic topic;
  std::string_view file;
};

// No topic has the name of a command. In display order.
constexpr TopicPage topic_pages[] = {
    {{"first-ten-minutes", "a first training on two servers", ""}, "first_ten_minutes.md"},
    {{"rented-machines", "machines of providers, shared logins, odd disks", ""}, "rented_machines.md"},
    {{"when-it-hangs", "what to check when a launch makes no progress", ""}, "when_it_hangs.md"},
    {{"debugging", "pdb in a rank", "attach"}, "debugging.md"},
    {{"from-labml_remote", "what is the same and what differs", ""}, "from_labml_remote.md"},
    {{"from-torchrun", "`remote` for torchrun users", ""}, "from_torchrun.md"},
    {{"from-slurm", "`remote` for users of sbatch and srun", ""}, "from_slurm.md"},
    {{"from-mpirun", "`remote` for mpirun users", ""}, "from_mpirun.md"},
    {{"naming", "how jobs, servers and commands are named", ""}, "commands.md"},
    {{"configs", "every key of .remote/configs.yaml", "init"}, "configuration.md"},
    {{"logging-in", "one-time codes and security keys, once a day", "login"}, "login.md"},
    {{"checking", "what `check` checks, and the fixes", "check"}, "check.md"},
    {{"network", "how `check` tests the network between servers", "check"}, "network.md"},
    {{"watching", "the screen of `top` and its keys", "top"}, "top.md"},
    {{"reports", "the parts of a report", "report"}, "report.md"},
    {{"past-launches", "the records of a launch", "history"}, "history.md"},
    {{"results", "how to copy results to this machine", "pull"}, "results.md"},
    {{"news", "messages when a launch has ended", "notify"}, "notify.md"},
    {{"resilience", "launches that start again after a failure", "launch"}, "resilience.md"},
    {{"sharing", "GPUs, cores and memory shared out among users", "launch"}, "sharing.md"},
    {{"sweeps", "a command for many parameters", "sweep"}, "sweep.md"},
    {{"ports", "ports of servers, TensorBoard and Jupyter", "forward"}, "forward.md"},
    {{"frozen", "launches that no sync changes", "launch"}, "frozen.md"},
    {{"launchers", "launchers and schedulers", "launch"}, "launchers.md"},
    {{"ranks", "ranks started by remote itself", ""}, "ranks.md"},
    {{"torchrun", "ranks started by torchrun", ""}, "torchrun.md"},
    {{"mpi", "ranks started by mpirun", ""}, "mpi.md"},
    {{"slurm", "login nodes of Slurm as servers", ""}, "slurm.md"},
    {{"containers", "jobs in docker, podman or apptainer", ""}, "containers.md"},
    {{"shared-file", "rendezvous through a shared file", ""}, "shared_file.md"},
    {{"security", "what remote trusts, and what it does not", "trust"}, "security.md"},
    {{"reliability", "guarantees and limits", ""}, "reliability.md"},
    {{"jsonl", "the events of --jsonl, for programs", ""}, "jsonl.md"},
    {{"protocol", "the channel, job folders, links of servers", ""}, "protocol.md"},
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
