#include "cli/show/check.hpp"

#include "cli/context.hpp"
#include "cli/show/network.hpp"
#include "ui/table.hpp"

namespace remote::cli {
namespace {

struct StatusLook {
  const char* word;
  ui::Style style;
};

StatusLook look_of(CheckStatus status) {
  switch (status) {
    case CheckStatus::ok:
      return {"ok", ui::Style::green};
    case CheckStatus::warn:
      return {"warn", ui::Style::yellow};
    case CheckStatus::fail:
      return {"fail", ui::Style::red};
    case CheckStatus::skip:
      break;
  }
  return {"skip", ui::Style::dim};
}

}  // namespace

nlohmann::json to_json(const CheckReport& report) {
  auto all = nlohmann::json::array();
  for (const ServerCheck& server : report.servers) {
    auto checks = nlohmann::json::array();
    for (const Finding& finding : server.findings) {
      checks.push_back({{"name", finding.name},
                        {"status", look_of(finding.status).word},
                        {"detail", finding.detail},
                        {"fix", or_null(finding.fix ? finding.fix->text : "")}});
    }
    all.push_back({{"server", server.server},
                   {"ok", server.ok()},
                   {"checks", checks},
                   {"facts", nlohmann::json::object()}});
    if (report.network) {
      all.back()["facts"]["network"] = to_json(*report.network, all.size() - 1);
    }
  }
  return all;
}

std::string check_table(const CheckReport& report, const ui::Terminal& terminal) {
  ui::Table table({"SERVER", "CHECK", "STATUS", "DETAIL", "FIX"});
  for (const ServerCheck& server : report.servers) {
    for (const Finding& finding : server.findings) {
      const StatusLook look = look_of(finding.status);
      table.add({ui::Cell(server.server, ui::Style::cyan), finding.name, ui::Cell(look.word, look.style),
                 finding.detail, finding.fix ? finding.fix->text : ""});
    }
  }
  return table.text(terminal);
}

}  // namespace remote::cli
