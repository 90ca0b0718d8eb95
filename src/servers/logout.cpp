#include "servers/logout.hpp"

#include <algorithm>

#include "base/strings.hpp"

namespace remote::servers {
namespace {

constexpr std::size_t longest = 4096;  // of a list of users

bool yes(AnswerLine& line) {
  return line.choice<bool>(line.word(), {{"yes", true}}, "a word is wrong");
}

bool names(const std::vector<std::string>& users, const std::string& user) {
  return std::ranges::find(users, user) != users.end();
}

}  // namespace

bool LogoutRules::take(std::string_view key, AnswerLine& line) {
  if (key == "session") {
    in_session = yes(line);
  } else if (key == "kill_user_processes") {
    kill_user_processes = yes(line);
  } else if (key == "kill_excluded") {
    excluded = split_words(visible_line(line.rest(), longest));
  } else if (key == "kill_only") {
    only = split_words(visible_line(line.rest(), longest));
  } else {
    return false;
  }
  return true;
}

bool LogoutRules::ends_jobs_of(const std::string& user) const {
  const bool is_excluded = excluded.empty() ? user == "root" : names(excluded, user);
  return in_session && kill_user_processes && !is_excluded && (only.empty() || names(only, user));
}

LogoutRules logout_rules(const ServerFacts& facts) {
  return {facts.in_session, facts.kill_user_processes, facts.kill_excluded, facts.kill_only};
}

}  // namespace remote::servers
