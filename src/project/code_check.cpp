#include "project/code_check.hpp"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "base/clock.hpp"
#include "base/hashing.hpp"
#include "base/log.hpp"
#include "base/ownership.hpp"
#include "base/strings.hpp"
#include "config/folder_id.hpp"
#include "servers/fanout.hpp"
#include "servers/project_tree.hpp"
#include "servers/python_env.hpp"
#include "servers/source.hpp"
#include "servers/sync.hpp"

namespace remote::project {
namespace {

using Names = std::vector<std::string>;
using servers::ProjectState;

constexpr std::size_t longest_list = 8U << 20U;  // about 150,000 files

// A server's files compared with those here.
struct Comparison {
  bool known = false;  // whether the server answered
  bool never_sent = false;
  Names here;   // changed on this machine, or never sent
  Names there;  // changed on the server, or sent by another sender
  bool gone = false;
  std::string by{};  // as in CodeChanged
};

class Comparing {
 public:
  Comparing(Core& core, const config::Server& server, const ssh::LoginFacts& login, const ProjectState& here)
      : core_(core),
        server_(server),
        here_(here),
        state_(core.config, server, login),
        mark_(state_.mark()),
        sent_(state_.files()) {}

  // `own`: see own_source().
  Comparison compare(const std::optional<wire::CodeFacts>& answer,
                     const std::optional<wire::ProjectSource>& source, const wire::ProjectSource& own) {
    Comparison found{.known = answer.has_value(), .never_sent = mark_.never(), .here = {}, .there = {}};
    if (!answer) {
      found.here = servers::changed_since(core_.config, mark_, here_);
      return found;
    }
    const auto is_missing = [](const wire::ChangedFile& file) { return !file.stamp; };
    found.gone = !mark_.never() && answer->count == here_.files().size() &&
                 std::ranges::all_of(answer->files, is_missing);
    remember_gone(found.gone);
    if (source && source->folder_id != own.folder_id) {
      found.by = servers::sent_by_text(*source, own);
    }
    for (const std::string& name : differing(*answer)) {
      (is_changed_here(name) ? found.here : found.there).push_back(name);
    }
    if (answer->count == 0 && found.here.empty() && mark_.digest != sha256_hex(here_.text())) {
      remember();
    }
    return found;
  }

 private:
  // Called if the server's files are exactly those that a transfer would have sent.
  void remember() const {
    try {
      state_.remember(here_);
    } catch (const Error& error) {
      log_info(server_.name, "{}", error.message());
    }
  }

  void remember_gone(bool gone) const {
    try {
      state_.set_gone(gone);
    } catch (const Error& error) {
      log_info(server_.name, "{}", error.message());
    }
  }

  std::set<std::string> differing(const wire::CodeFacts& answer) {
    std::set<std::string> names;
    std::set<std::string> doubtful;  // files whose contents must be compared
    if (!mark_.digest.empty()) {
      const Names hidden = here_.hidden_changes_since(sent_);
      doubtful.insert(hidden.begin(), hidden.end());
    }
    for (const wire::ChangedFile& file : answer.files) {
      const servers::FileStamp* own = here_.find(file.name);
      if (own == nullptr) {
        continue;
      }
      there_[file.name] = file.stamp;
      (file.stamp && file.stamp->size == own->size ? doubtful : names).insert(file.name);
    }
    if (answer.count > answer.files.size()) {
      for (const servers::FileStamp& file : here_.files()) {
        doubtful.insert(file.name);
      }
    }
    const Names found = with_other_content({doubtful.begin(), doubtful.end()});
    names.insert(found.begin(), found.end());
    return names;
  }

  Names with_other_content(const Names& names) const {
    if (names.empty()) {
      return {};
    }
    servers::SyncOptions options;
    options.pipe_program = core_.hooks.rsync_helper;
    options.names = names;
    try {
      const auto connection = core_.connector().connect(server_, core_.cancel());
      return servers::differences(*connection, core_.config, server_, options, core_.cancel());
    } catch (const Error& error) {
      log_info(server_.name, "{}", error.message());
      return names;  // without rsync on the server, sizes and times decide
    }
  }

  // Whether the server still has the version that was sent to it.
  bool is_changed_here(const std::string& name) const {
    const auto there = there_.find(name);
    const servers::FileStamp* sent = sent_.find(name);
    if (mark_.digest.empty() || (there != there_.end() && !there->second)) {
      return true;
    }
    if (there == there_.end()) {
      const servers::FileStamp* own = here_.find(name);
      return sent == nullptr || own == nullptr || *own != *sent;
    }
    return sent != nullptr && sent->size == there->second->size && sent->seconds() == there->second->seconds;
  }

  Core& core_;
  const config::Server& server_;
  const ProjectState& here_;
  const servers::SentState state_;
  const servers::SentState::Mark mark_;
  const ProjectState sent_;
  std::map<std::string, std::optional<wire::ChangedFile::Stamp>> there_;
};

// Finds the files that count_files_gone_here() counts, on one server.
Names find_files_gone_here(Core& core, const config::Server& server, const ssh::LoginFacts& login) {
  constexpr std::size_t most_names = 10'000;
  Names found;
  try {
    Names names = servers::SentFiles(core.config, server, login).gone_here(core.cancel());
    std::erase_if(names,
                  [](const std::string& name) { return name.ends_with('/') || name.starts_with(".git/"); });
    names.resize(std::min(names.size(), most_names));
    if (names.empty()) {
      return {};
    }
    Names paths;
    for (const std::string& name : names) {
      paths.push_back(core.config.project_path_on(server) + "/" + name);
    }
    const auto kinds =
        servers::look_at(*core.connector().connect(server, core.cancel()), paths, core.cancel());
    for (std::size_t i = 0; i < names.size(); ++i) {
      if (kinds[i] != servers::PathKind::missing) {
        found.push_back(names[i]);
      }
    }
  } catch (const Error& error) {
    log_info(server.name, "{}", error.message());
  }
  return found;
}

void add_event(std::vector<CodeChanged>& all, CodeChanged event) {
  const auto same = std::ranges::find_if(all, [&](const CodeChanged& one) {
    return one.names == event.names && one.never_sent == event.never_sent && one.there == event.there &&
           one.gone == event.gone && one.by == event.by;
  });
  if (same != all.end()) {
    same->servers.push_back(event.servers.front());
  } else if (!event.names.empty()) {
    all.push_back(std::move(event));
  }
}

}  // namespace

std::size_t count_files_gone_here(Core& core, const std::vector<config::Server>& servers,
                                  const std::vector<ssh::LoginFacts>& logins) {
  const auto outcomes =
      servers::fan_out(servers, &config::Server::name, [&](const config::Server& server, std::size_t index) {
        return find_files_gone_here(core, server, logins[index]);
      });
  std::set<std::string> names;
  for (const auto& outcome : outcomes) {
    if (outcome.value) {
      names.insert(outcome.value->begin(), outcome.value->end());
    }
  }
  return names.size();
}

bool is_gone_from(const std::string& server, const std::vector<CodeChanged>& changed) {
  return std::ranges::any_of(changed, [&](const CodeChanged& event) {
    return event.gone && std::ranges::find(event.servers, server) != event.servers.end();
  });
}

wire::ProjectSource own_source(const config::Config& config) {
  return {.folder_id = config::find_folder_id(config),
          .user = visible_line(user_at_host(), 150),
          .folder = visible_line(resolved(config.project).string(), 1000),
          .at = now_seconds().time_since_epoch().count()};
}

CodeCheck::CodeCheck(const Core& core, std::optional<PreparedCheck> prepared)
    : config_(core.config),
      prepared_(std::move(prepared)),
      here_(std::async(std::launch::async, [&core] { return files_here(core.config, core.cancel()); })) {}

void CodeCheck::add_to(servers::FactsRequest& request, const config::Server& server) const {
  try {
    if (here_.get().listed().size() <= longest_list) {
      request.files = here_.get().listed();
    }
  } catch (const Error&) {  // tell() reports it
  }
  request.wanted.code = !request.files.empty();
  request.wanted.scripts = servers::scripts_folder(config_, server);
}

// Servers that did not answer get an empty answer.
std::vector<servers::FactsAnswer> CodeCheck::ask_all(Core& core,
                                                     const std::vector<config::Server>& servers) const {
  const auto outcomes =
      servers::fan_out(servers, &config::Server::name, [&](const config::Server& server, std::size_t) {
        servers::FactsRequest request{.wanted = {.project = core.config.project_path_on(server)},
                                      .timeout = std::chrono::seconds(30)};
        add_to(request, server);
        if (prepared_) {
          prepared_->add_to(request.wanted, server);
        } else if (!request.wanted.code) {
          return servers::FactsAnswer();
        }
        return servers::ask_facts(*core.connector().connect(server, core.cancel()), request, core.cancel());
      });
  std::vector<servers::FactsAnswer> answers;
  for (std::size_t i = 0; i < servers.size(); ++i) {
    if (outcomes[i].error) {
      log_info(servers[i].name, "{}", outcomes[i].error->message());
    }
    answers.push_back(outcomes[i].value.value_or(servers::FactsAnswer()));
  }
  return answers;
}

void CodeCheck::report_prepared(Core& core, const std::vector<config::Server>& servers,
                                const std::vector<servers::FactsAnswer>& answers,
                                const Result& result) const {
  std::vector<CheckWarned> warnings;
  std::vector<Error> errors;
  for (std::size_t i = 0; i < servers.size(); ++i) {
    prepared_->judge(answers[i], servers[i], is_gone_from(servers[i].name, result.changed), warnings, errors);
  }
  report_unfit(core, warnings, errors);
}

CodeCheck::Result CodeCheck::tell(Core& core, const std::vector<config::Server>& servers,
                                  const std::vector<ssh::LoginFacts>& logins,
                                  const std::vector<servers::FactsAnswer>& answers) {
  if (!answers.empty()) {
    return compare(core, servers, logins, answers);
  }
  const std::vector<servers::FactsAnswer> asked = ask_all(core, servers);
  Result result = compare(core, servers, logins, asked);
  if (prepared_) {
    report_prepared(core, servers, asked, result);
  }
  return result;
}

CodeCheck::Result CodeCheck::compare(Core& core, const std::vector<config::Server>& servers,
                                     const std::vector<ssh::LoginFacts>& logins,
                                     const std::vector<servers::FactsAnswer>& answers) const {
  Result result;
  try {
    const ProjectState& here = here_.get();
    if (here.files().empty()) {
      return result;  // no code to record
    }
    const wire::ProjectSource own = own_source(core.config);
    const auto outcomes = servers::fan_out(servers, &config::Server::name,
                                           [&](const config::Server& server, std::size_t index) {
                                             return Comparing(core, server, logins[index], here)
                                                 .compare(answers[index].code, answers[index].source, own);
                                           });
    for (std::size_t i = 0; i < servers.size(); ++i) {
      const Comparison& one = outcomes[i].value ? *outcomes[i].value : Comparison();
      const std::string& name = servers[i].name;
      add_event(result.changed, {{name}, one.here, one.never_sent, false, one.gone});
      add_event(result.changed, {{name}, one.there, false, true, false, one.by});
      LaunchCode& where = result.servers;
      (!one.here.empty() || !one.there.empty() ? where.different
       : one.known                             ? where.same
                                               : where.unknown)
          .push_back(name);
    }
    result.servers.gone_here = count_files_gone_here(core, servers, logins);
    for (const CodeChanged& event : result.changed) {
      core.tell(event);
    }
  } catch (const Error& error) {
    core.tell(StoreProblem{"it is unknown whether the code was changed here: " + error.message()});
    for (const config::Server& server : servers) {
      result.servers.unknown.push_back(server.name);
    }
  }
  return result;
}

void tell_code(Core& core, GitState& git, LaunchCode code) {
  if (code.same.empty() && code.different.empty() && code.unknown.empty()) {
    return;
  }
  auto [record, patch] = git.get();
  code.commit = record.commit;
  code.clean = record.clean;
  code.changed = record.changed;
  code.untracked = record.untracked;
  code.changed_in = record.changed_in;
  git = known_git(std::move(record), std::move(patch));
  core.tell(code);
}

}  // namespace remote::project
