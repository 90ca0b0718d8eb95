#include <algorithm>

#include <fmt/format.h>
#include <remote/error.hpp>
#include <remote/launch_texts.hpp>

#include "base/strings.hpp"

namespace remote {
namespace {

int slots_of(std::string_view text, const std::string& where) {
  const auto number = parse_number<int>(text);
  if (!number || *number < 1 || *number > most_ranks_per_server) {
    throw Error::usage(where, fmt::format("'{}' is not a number of ranks", visible_line(text, 60)),
                       "give a number from 1 up, as in HOST slots=4");
  }
  return *number;
}

// Parses "HOST", "USER@HOST", "HOST:N" or "[ADDRESS]:N".
LaunchHost host_of(std::string_view word, const std::string& where) {
  LaunchHost host;
  host.where = where;
  if (const std::size_t at = word.find('@'); at != std::string_view::npos) {
    word.remove_prefix(at + 1);  // the user name is in configs.yaml
  }
  const std::size_t colon = word.rfind(':');
  const bool bracketed = word.starts_with('[');
  const bool numbered =
      colon != std::string_view::npos &&
      (bracketed ? word[colon - 1] == ']' : word.find(':') == colon);  // otherwise it is an IPv6 address
  if (numbered) {
    host.slots = slots_of(word.substr(colon + 1), where);
    word = word.substr(0, colon);
  }
  if (word.starts_with('[') && word.ends_with(']')) {
    word = word.substr(1, word.size() - 2);
  }
  if (word.empty()) {
    throw Error::usage(where, "a host has no name", "write HOST or HOST:N");
  }
  host.name = std::string(word);
  return host;
}

// The words of a line. "slots = 2" is one word.
std::vector<std::string> words_of(std::string_view line) {
  std::string text(line.substr(0, line.find('#')));
  for (std::size_t at = text.find('='); at != std::string::npos; at = text.find('=', at + 1)) {
    const std::size_t before = text.find_last_not_of(" \t", at == 0 ? 0 : at - 1);
    const std::size_t after = text.find_first_not_of(" \t", at + 1);
    if (before != std::string::npos && after != std::string::npos) {
      text.replace(before + 1, after - before - 1, "=");
      at = before + 1;
    }
  }
  return split_words(text);
}

}  // namespace

std::vector<LaunchHost> parse_hostfile(std::string_view text, const std::string& file) {
  std::vector<LaunchHost> hosts;
  int number = 0;
  for (const std::string& line : split(text, '\n')) {
    ++number;
    const std::vector<std::string> words = words_of(line);
    if (words.empty()) {
      continue;
    }
    const std::string where = fmt::format("{}:{}", file, number);
    LaunchHost host = host_of(words.front(), where);
    for (std::size_t i = 1; i < words.size(); ++i) {
      const std::size_t equals = words[i].find('=');
      const std::string key = lower_case(words[i].substr(0, equals));
      if (key == "slots" && equals != std::string::npos) {
        host.slots = slots_of(std::string_view(words[i]).substr(equals + 1), where);
      } else if (key != "max_slots" && key != "max-slots") {  // an upper bound is irrelevant here
        throw Error::usage(where, fmt::format("'{}' is not understood", visible_line(words[i], 60)),
                           "a line is HOST or HOST slots=N");
      }
    }
    hosts.push_back(std::move(host));
  }
  if (hosts.empty()) {
    throw Error::usage(file, "it names no host", "a line is HOST or HOST slots=N");
  }
  return hosts;
}

std::vector<LaunchHost> parse_host_list(std::string_view text) {
  std::vector<LaunchHost> hosts;
  const std::string where = fmt::format("-H {}", visible_line(text, 200));
  for (const std::string& word : split(text, ',')) {
    if (!trim(word).empty()) {
      hosts.push_back(host_of(trim(word), where));
    }
  }
  if (hosts.empty()) {
    throw Error::usage(where, "it names no host", "write -H a,b or -H a:2,b:2");
  }
  return hosts;
}

}  // namespace remote
