#include "cli/show/hint.hpp"

namespace remote::cli {
namespace {

std::string words_of(Remedy remedy, const std::string& detail) {
  switch (remedy) {
    case Remedy::none:
      return "";
    case Remedy::make_project:
      return "run `remote init` in the project's folder, or name it with --project DIR";
    case Remedy::add_server:
      return "for practice servers, run `remote sandbox up`";
    case Remedy::make_key:
      return "--generate makes it";
    case Remedy::send_project:
      return "send it with `remote rsync`";
    case Remedy::choose_port:
      return detail.empty() ? "name one: --master-port PORT"
                            : "leave --master-port out, or use one that is free: " + detail;
    case Remedy::pass_local_rank:
      return "or add --use-env";
    case Remedy::start_job:
      return "start one: remote job-run --cmd … --server …";
    case Remedy::list_jobs:
      return "see: remote job-list";
    case Remedy::trust_settings:
      return "if you want that, allow it with `remote trust`";
    case Remedy::trust_folder:
      return "or allow it as it is with `remote trust --folder`";
    case Remedy::follow_job:
      return detail.empty() ? "name one: remote job-tail --job KEY"
                            : "follow it with: remote job-tail --job " + detail;
  }
  return "";
}

}  // namespace

std::string hint_of(const Error& error) {
  const std::string words = words_of(error.remedy(), error.remedy_detail());
  return error.hint() + (error.hint().empty() || words.empty() ? "" : "; ") + words;
}

}  // namespace remote::cli
