// `scheduler: slurm` for a server, and the options of its jobs for sbatch.

#include <algorithm>
#include <array>

#include "base/strings.hpp"
#include "config/section.hpp"

namespace remote::config {
namespace {

bool is_printable_ascii(const std::string& text) {
  return std::ranges::all_of(text, [](char c) { return c >= ' ' && c <= '~'; });
}

// These strings become lines of a batch script, which both sbatch and a shell read: rejects characters that
// either would interpret.
constexpr std::string_view shell_signs = "\"'\\`$#";

std::optional<std::string> word_problem(const std::string& word) {
  if (!is_printable_ascii(word) || word.find(' ') != std::string::npos ||
      word.find_first_of(shell_signs) != std::string::npos || word.starts_with('-')) {
    return "it must be one word of ASCII, without quotes";
  }
  return std::nullopt;
}

std::optional<std::string> time_problem(const std::string& time) {
  if (time.find_first_not_of("0123456789:-") != std::string::npos || time.starts_with('-')) {
    return "write a time as for sbatch: 30 (minutes), 2:00:00 or 1-12:00:00";
  }
  return std::nullopt;
}

// Options that a launch sets itself.
constexpr std::array<std::string_view, 22> set_by_launch{
    "-N",        "--nodes",     "-n",           "--ntasks",   "--ntasks-per-node",
    "-o",        "--output",    "-e",           "--error",    "-i",
    "--input",   "--open-mode", "-J",           "--job-name", "-a",
    "--array",   "-d",          "--dependency", "-D",         "--chdir",
    "--requeue", "--no-requeue"};

// Options that would keep sbatch from submitting exactly one job that is visible in the login node's squeue.
constexpr std::array<std::string_view, 13> other_than_submit{
    "-M", "--clusters", "--wrap", "-W",      "--wait", "--parsable", "--test-only",
    "-h", "--help",     "-u",     "--usage", "-V",     "--version"};

// The one of these options that sbatch would recognize in this word: it accepts unique prefixes of long
// names, and values attached to short ones.
template <typename Options>
std::optional<std::string_view> meant_of(const Options& options, const std::string& word) {
  const bool is_long = word.starts_with("--");
  const std::string name = is_long ? word.substr(0, word.find('=')) : word.substr(0, 2);
  const auto found = std::ranges::find_if(
      options, [&](std::string_view option) { return is_long ? option.starts_with(name) : option == name; });
  return found == options.end() ? std::nullopt : std::optional(*found);
}

// An item of `sbatch`, without a leading "#SBATCH" from a batch script.
std::string read_option(const Section& section, const Found<std::string>& found) {
  std::string option(trim(found.value));
  constexpr std::string_view mark = "#SBATCH";
  if (option.starts_with(mark)) {
    option = std::string(trim(std::string_view(option).substr(mark.size())));
  }
  if (const auto problem = sbatch_problem(option)) {
    throw section.unfit("sbatch", found, *problem);
  }
  return option;
}

}  // namespace

std::optional<std::string> sbatch_problem(const std::string& option) {
  if (!is_printable_ascii(option) || !option.starts_with('-') || option.size() < 2 ||
      option.find_first_of(shell_signs) != std::string::npos) {
    return "each item is an option of sbatch in ASCII, such as --mem=32G, without quotes, '#', '$' and "
           "backslashes";
  }
  // The option may be followed by a single word, its value.
  const std::string word = option.substr(0, option.find(' '));
  const std::string value(trim(std::string_view(option).substr(word.size())));
  if (value.starts_with('-') || value.find(' ') != std::string::npos) {
    return "each item is one option; write the next one as a separate item";
  }
  // A short option without a value may be followed by other options in the same word: -Hn4 is -H -n 4.
  constexpr std::string_view without_value = "HIOQRVWXhksuv";
  if (word.size() > 2 && word[1] != '-' && without_value.find(word[1]) != std::string_view::npos) {
    return "write each option as a separate item, or by its long name";
  }
  if (const auto meant = meant_of(set_by_launch, word)) {
    return "remote sets " + std::string(*meant) + " itself";
  }
  if (const auto meant = meant_of(other_than_submit, word)) {
    return "with " + std::string(*meant) + ", remote could not find the job";
  }
  return std::nullopt;
}

std::optional<Slurm> read_slurm(const Section& section) {
  const auto scheduler = section.text("scheduler");
  if (!scheduler) {
    for (const char* key : {"partition", "account", "time", "constraint", "gpus_per_node", "sbatch"}) {
      if (const YamlNode* node = section.node(key)) {
        throw section.error(node->mark, std::string("'") + key + "' is for a login node of Slurm",
                            "add scheduler: slurm next to it, or remove it");
      }
    }
    return std::nullopt;
  }
  if (scheduler->value != "slurm") {
    throw section.unfit("scheduler", *scheduler, "the only supported scheduler is slurm");
  }
  // Indices would become CUDA_VISIBLE_DEVICES in each rank, overriding what Slurm sets there.
  if (const YamlNode* gpus = section.node("gpus"); gpus != nullptr && gpus->kind == YamlNode::Kind::list) {
    throw section.error(gpus->mark,
                        "'gpus' cannot choose GPUs at a login node of Slurm, which gives them to its jobs",
                        "write gpus_per_node: NUMBER, or remove it");
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
