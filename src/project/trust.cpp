// What the project wants to do on this machine, and which of it the user has allowed.

#include "config/trust.hpp"

#include <algorithm>
#include <set>

#include "project/core.hpp"
#include "servers/links.hpp"
#include "servers/sent_state.hpp"

namespace remote::project {
namespace {

using Link = servers::OutsideLink;

Demand demand_of(const Link& link) {
  return {Demand::Kind::link, "", link.name, link.target.string(), ""};
}

}  // namespace

bool Core::ask_for(const std::vector<Demand>& demands) {
  if (!hooks.allow || !state_.ask<bool>([&] { return hooks.allow(demands); })) {
    return false;
  }
  try {
    config::TrustStore(config.project).allow(demands);
  } catch (const Error& error) {
    tell(ConfigWarning{error.message()});  // allowed for this time
  }
  return true;
}

void Core::require_trust() {
  if (in_question_) {
    throw Error::usage("cannot use the servers now",
                       "this call was made while a question is asked, and a server waits for the answer",
                       "return from ask_secret or allow first");
  }
  if (state_.trusted_) {
    return;
  }
  const std::lock_guard lock(state_.trust_mutex_);
  const auto demands = config::TrustStore(config.project).not_allowed(config::demands_of(config));
  if (!state_.trusted_ && !demands.empty() && !ask_for(demands)) {
    throw Error::usage("this project is not trusted yet",
                       "its configuration needs something on this machine that you have not allowed")
        .mended_by(Remedy::trust_settings);
  }
  state_.trusted_ = true;
}

namespace {

std::vector<Demand> demands(Core& core) {
  const config::TrustStore store(core.config.project);
  std::vector<Demand> all = config::demands_of(core.config);
  const auto allowed = [&](const Link& link) { return store.allows(demand_of(link)); };
  for (const Link& link : servers::outside_links(core.config, allowed, core.cancel())) {
    if (link.why == LinkLeftOut::Why::not_allowed) {
      all.push_back(demand_of(link));
    }
  }
  return store.not_allowed(std::move(all));
}

}  // namespace

servers::ProjectState files_here(const config::Config& config, const Cancel& cancel) {
  const config::TrustStore store(config.project);
  const auto allowed = [&](const Link& link) { return store.allows(demand_of(link)); };
  std::vector<std::string> names;
  for (const Link& link : servers::outside_links(config, allowed, cancel)) {
    if (link.why != LinkLeftOut::Why::not_allowed || !allowed(link)) {
      names.push_back(link.name);
    }
  }
  return servers::ProjectState::look(config, names, cancel);
}

std::vector<std::string> links_to_leave(Core& core) {
  const config::TrustStore store(core.config.project);
  std::set<std::string> yes;  // names of links that were just allowed
  const auto allowed = [&](const Link& link) {
    return yes.contains(link.name) || store.allows(demand_of(link));
  };
  std::vector<Link> links;
  for (bool again = true; again;) {
    links = servers::outside_links(core.config, allowed, core.cancel());
    std::erase_if(
        links, [&](const Link& link) { return link.why == LinkLeftOut::Why::not_allowed && allowed(link); });
    std::vector<Demand> asked;
    for (const Link& link : links) {
      if (link.why == LinkLeftOut::Why::not_allowed) {
        asked.push_back(demand_of(link));
      }
    }
    // The target of a link that was just allowed may contain more links.
    again = !asked.empty() && core.ask_for(asked);
    for (const Demand& demand : again ? asked : std::vector<Demand>()) {
      yes.insert(demand.value);
    }
  }
  std::vector<std::string> names;
  EnvironmentsLeftOut environments;
  for (const Link& link : links) {
    // For example Emacs creates such a link as a lock while a file is open.
    const bool is_lock = link.why == LinkLeftOut::Why::nowhere &&
                         std::filesystem::path(link.name).filename().string().starts_with(".#");
    if (link.why == LinkLeftOut::Why::environment) {
      environments.names.push_back(link.name);
    } else if (!is_lock) {
      core.tell(LinkLeftOut{link.name, link.target.string(), link.why});
    }
    names.push_back(link.name);
  }
  if (!environments.names.empty()) {
    core.tell(environments);
  }
  return names;
}

}  // namespace remote::project

namespace remote {

std::optional<Demand> Project::folder_demand(const std::filesystem::path& folder) {
  return config::folder_demand(folder);
}

void Project::allow(const std::filesystem::path& folder, const std::vector<Demand>& demands) {
  config::TrustStore(folder).allow(demands);
}

void Project::forget(const std::filesystem::path& folder) {
  config::TrustStore(folder).forget();
}

std::vector<Demand> Project::demands() {
  return project::call(*state_, {}, [](project::Core& core) { return project::demands(core); });
}

void Project::require_trust() {
  project::call_servers(*state_, {}, [](project::Core&) {});
}

}  // namespace remote
