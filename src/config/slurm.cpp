// `scheduler: slurm` of a server, and what its jobs say to sbatch.

#include <algorithm>
#include <array>

#include "base/strings.hpp"
#include "config/section.hpp"

namespace remote::config {
namespace {

bool is_plain(const std::string& text) {
  return std::ranges::all_of(text, [](char c) { return c >= ' ' && c <= '~'; });
}

// These texts become lines of a batch script, which are read by sbatch and by a shell.
std::optional<std::string> word_problem(const std::string& word) {
  if (!is_plain(word) || word.find_first_of(" \"'\\`$#") != std::string::npos || word.starts_with('-')) {
    return "it is one word of ASCII, without quotes";
  }
  return std::nullopt;
}

std::optional<std::string> time_problem(const std::string& time) {
  if (time.find_first_not_of("0123456789:-") != std::string::npos || time.starts_with('-')) {
    return "a time is written as sbatch takes it: 30 (minutes), 2:00:00 or 1-12:00:00";
  }
  return std::nullopt;
}

// The name of an option: "--mem" of "--mem=4G" and of "--mem 4G", "-p" of "-pgpu".
std::string option_name(const std::string& option) {
  return option.starts_with("--") ? option.substr(0, option.find_first_of("= ")) : option.substr(0, 2);
}

// A line of `sbatch` without the words that begin it in a batch script.
std::string read_option(const Section& section, const Found<std::string>& found) {
  // What a launch sets, and what would make sbatch do something else than to submit one job.
  static constexpr std::array<std::string_view, 27> ours{
      "-N",         "--nodes",     "-n",           "--ntasks",   "--ntasks-per-node",
      "-o",         "--output",    "-e",           "--error",    "-i",
      "--input",    "--open-mode", "-J",           "--job-name", "-a",
      "--array",    "-d",          "--dependency", "-D",         "--chdir",
      "--wrap",     "-W",          "--wait",       "--requeue",  "--no-requeue",
      "--parsable", "--test-only"};
  std::string option(trim(found.value));
  constexpr std::string_view mark = "#SBATCH";
  if (option.starts_with(mark)) {
    option = std::string(trim(std::string_view(option).substr(mark.size())));
  }
  if (!is_plain(option) || !option.starts_with('-') || option.size() < 2) {
    throw section.unfit("sbatch", found, "each line is an option of sbatch, such as --mem=32G");
  }
  if (std::ranges::find(ours, option_name(option)) != ours.end()) {
    throw section.unfit("sbatch", found, "remote sets " + option_name(option) + " itself");
  }
  return option;
}

}  // namespace

std::optional<Slurm> read_slurm(const Section& section) {
  const auto scheduler = section.text("scheduler");
  if (!scheduler) {
    for (const char* key : {"partition", "account", "time", "constraint", "gpus_per_node", "sbatch"}) {
      if (const YamlNode* node = section.node(key)) {
        throw section.error(node->mark, std::string("'") + key + "' is for a login node of Slurm",
                            "write scheduler: slurm beside it, or take it out");
      }
    }
    return std::nullopt;
  }
  if (scheduler->value != "slurm") {
    throw section.unfit("scheduler", *scheduler, "the only scheduler that is known is slurm");
  }
  Slurm slurm;
  slurm.partition = section.checked("partition", word_problem);
  slurm.account = section.checked("account", word_problem);
  slurm.time = section.checked("time", time_problem);
  slurm.constraint = section.checked("constraint", word_problem);
  slurm.gpus_per_node = section.number("gpus_per_node", 0, 1024);
  for (const auto& found : section.texts("sbatch")) {
    slurm.options.push_back(read_option(section, found));
  }
  return slurm;
}

}  // namespace remote::config
