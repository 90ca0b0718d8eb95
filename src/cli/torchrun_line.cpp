#include "cli/torchrun_line.hpp"

#include <algorithm>
#include <string_view>

#include "base/simple_commands.hpp"
#include "base/strings.hpp"
#include "cli/parser.hpp"
#include "cli/word_list.hpp"

namespace remote::cli {
namespace {

struct TorchOptions {
  WordList kept;
  bool is_elastic = false;  // needs torchrun's agents
  std::size_t nodes = 0;    // 0: all servers
  bool is_python = true;
};

bool takes_value(const std::string& command, const std::string& option) {
  return words_behind_options(command, {option, "x"}).empty();
}

// Reads the option at `at`. Returns the index of the first word after the option and its value.
std::size_t read_torch_option(const WordList& words, std::size_t at, TorchOptions& options) {
  constexpr std::string_view dropped =
      " --rdzv-endpoint --rdzv-id --rdzv-conf --rdzv-backend --node-rank --master-addr --local-addr "
      "--monitor-interval --start-method --role --num-nodes ";
  const std::string& word = words[at];
  const std::size_t equals = std::min(word.find('='), word.size());
  const bool is_attached = equals < word.size();
  std::string name = word.substr(0, equals);
  std::ranges::replace(name, '_', '-');
  const std::string value = is_attached ? word.substr(equals + 1) : word_at(words, at + 1);
  const std::size_t behind_value = std::min(at + (is_attached ? 1 : 2), words.size());
  if (name == "--standalone" || (name == "--nnodes" && is_number(value))) {
    options.nodes = parse_number<std::size_t>(name == "--standalone" ? "1" : value).value_or(0);
  }
  options.is_python = options.is_python && name != "--no-python";
  if (name == "--standalone" || name == "--no-python") {
    return at + 1;
  }
  if (has_name(dropped, name) || (name == "--nnodes" && value.find(':') == std::string::npos)) {
    return behind_value;
  }
  if (name == "--num-gpus" && is_number(value)) {
    options.kept.insert(options.kept.end(), {"--nproc-per-node", value});
    return behind_value;
  }
  options.is_elastic = options.is_elastic || name == "--nnodes" || (name == "--max-restarts" && value != "0");
  const bool has_value = !is_attached && takes_value("torch-launch", word);
  const std::size_t end = has_value ? behind_value : at + 1;
  options.kept.insert(options.kept.end(), words.begin() + static_cast<std::ptrdiff_t>(at),
                      words.begin() + static_cast<std::ptrdiff_t>(end));
  return end;
}

}  // namespace

std::vector<std::string> line_for_torchrun(const WordList& typed, const WordList& servers) {
  const bool has_two_words = has_name(" accelerate lightning fabric ", typed[0]);
  if (has_two_words && !has_name(" launch run ", word_at(typed, 1))) {
    return {};
  }
  const WordList words = tail_of(typed, has_two_words ? 2 : 1);
  TorchOptions options;
  std::size_t at = 0;
  while (at < words.size() && words[at].starts_with("-") && !has_name(" -- -m --module ", words[at])) {
    at = read_torch_option(words, at, options);
  }
  WordList program = tail_of(words, at);
  if (word_at(program, 0) == "--module") {
    program[0] = "-m";
  }
  WordList line;
  if (options.is_elastic) {
    line = {"--launcher", "torchrun"};
  }
  if (options.nodes > 0 && options.nodes < servers.size()) {
    const WordList first{servers.begin(), servers.begin() + static_cast<std::ptrdiff_t>(options.nodes)};
    line = joined(line, {"--server", join(first, ",")});
  }
  return start_program(options.is_python ? "torch-launch" : "launch", joined(line, options.kept), program);
}

}  // namespace remote::cli
