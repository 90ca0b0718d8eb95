#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/strings.hpp"
#include "cli/report/page.hpp"
#include "support/instants.hpp"

namespace remote::cli {
namespace {

using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

Report report_of(JobState state) {
  Job job;
  job.key = 4;
  job.server = "node-1";
  job.command = "python train.py '</script><script>alert(1)</script>'";
  job.state = state;
  job.created_at = instant(1795333800);
  job.started_at = instant(1795333801);
  if (state == JobState::failed) {
    job.result = ExitStatus::exited(3);
    job.ended_at = instant(1795333810);
  }
  Report report;
  report.jobs = {job};
  report.tails = {{std::nullopt, 4, {"<!-- <script>"}, {"\x1b[31mValueError: @DATA@ @NONCE@ </script>\x07"}}};
  report.curves = {{"loss", std::nullopt, 4, "step", {0, 1}, {1.5, 1}, false}};
  report.errors = {Error("cannot <b>ask</b>", "it is silent").on("node-2")};
  report.made_at = instant(1795333820);
  return report;
}

// The data in a page as a browser reads it.
nlohmann::json data_in(const std::string& page) {
  const std::string begin = R"(type="application/json" id="data">)";
  const std::size_t from = page.find(begin) + begin.size();
  return nlohmann::json::parse(page.substr(from, page.find("</script>", from) - from));
}

TEST(ReportPage, ForeignTextStaysText) {
  const auto data = report_json(report_of(JobState::failed), "my <project>", false);
  const std::string page = report_page(data, report_of(JobState::failed));
  EXPECT_THAT(page, Not(HasSubstr("alert(1)</script>")));
  EXPECT_THAT(page, Not(HasSubstr("<!-- <script>")));
  EXPECT_THAT(page, Not(HasSubstr("<b>ask")));
  EXPECT_THAT(page, Not(HasSubstr("\x1b")));
  EXPECT_EQ(data_in(page), nlohmann::json(data));
  // The template's placeholders are filled once; the same text in the output stays as it is.
  EXPECT_THAT(data_in(page)["cause"]["lines"][0].get<std::string>(), HasSubstr("@DATA@ @NONCE@ </script>"));
}

TEST(ReportPage, NeedsNothingElse) {
  const std::string page =
      report_page(report_json(report_of(JobState::running), "p", false), report_of(JobState::running));
  EXPECT_THAT(page, HasSubstr("default-src 'none'"));
  EXPECT_THAT(page, HasSubstr("uPlot"));
  EXPECT_THAT(page, HasSubstr("MIT License"));
  EXPECT_THAT(page, Not(HasSubstr("src=\"")));
  EXPECT_THAT(page, Not(HasSubstr("@UPLOT")));
  EXPECT_THAT(page, Not(HasSubstr("@PAGE")));
  EXPECT_NE(page, report_page(report_json(report_of(JobState::running), "p", false),
                              report_of(JobState::running)));  // another nonce
}

TEST(ReportPage, TheCauseStandsAboveAllElse) {
  const auto data = report_json(report_of(JobState::failed), "p", false);
  EXPECT_EQ(data["state"], "failed");
  EXPECT_EQ(data["look"], "bad");
  EXPECT_EQ(report_json(report_of(JobState::lost), "p", false)["state"], "lost");
  EXPECT_EQ(report_json(report_of(JobState::lost), "p", false)["look"], "bad");
  EXPECT_THAT(data["cause"]["title"].get<std::string>(), HasSubstr("failed exit 3"));
  EXPECT_EQ(data["jobs"][0]["state_text"], "failed exit 3");  // same text as in job-list
  const std::string frame(report_part("page.html"));
  EXPECT_LT(frame.find("id=\"cause\""), frame.find("id=\"timeline\""));

  Report report = report_of(JobState::failed);
  Verdict verdict;
  verdict.first = report.jobs.front();
  verdict.last_lines = {"ValueError: the reason"};
  verdict.total = 4;
  verdict.ended = 3;
  report.verdict = verdict;
  const auto judged = report_json(report, "p", false);
  EXPECT_EQ(judged["cause"]["lines"][0], "ValueError: the reason");
  EXPECT_THAT(judged["cause"]["rest"].get<std::string>(), HasSubstr("3 others were ended after it"));
}

TEST(ReportPage, TheHeatMapOfTheBandwidthStandsInThePage) {
  Report report = report_of(JobState::failed);
  EXPECT_THAT(report_page(report_json(report, "p", false), report), Not(HasSubstr("<svg")));
  report.bandwidth.emplace();
  report.bandwidth->at = instant(1795333800);
  Network& network = report.bandwidth->network;
  for (const char* name : {"node-1", "<b>"}) {
    network.servers.emplace_back().server = name;
  }
  network.bandwidth.emplace().flows = {{.from = 0, .to = 1, .gbit_s = 0.5, .outlier = true}};
  const auto data = report_json(report, "p", false);
  EXPECT_EQ(data["bandwidth"]["measured_at"], "2026-11-22T07:50:00Z");
  EXPECT_EQ(data["bandwidth"]["servers"][0]["to"][0]["gbit_s"], 0.5);
  EXPECT_EQ(data["bandwidth"]["servers"][0]["to"][0]["outlier"], true);
  const std::string page = report_page(data, report);
  EXPECT_THAT(page, HasSubstr("<svg"));
  EXPECT_THAT(page, HasSubstr("node-1 → &lt;b&gt;: 0.5 Gbit/s"));
  EXPECT_THAT(page, Not(HasSubstr("<b>:")));
}

TEST(ReportPage, WhatStandsStillDoesNotLookWell) {
  Report report = report_of(JobState::running);
  report.errors.clear();
  Job& job = report.jobs.front();
  EXPECT_TRUE(report_json(report, "p", true)["problems"].empty());
  job.checked_at = instant(1795333800);
  job.failed_at = instant(1795333800 - 240);
  const std::string who = "job " + std::to_string(job.key);
  EXPECT_EQ(report_json(report, "p", true)["problems"][0],
            who + " has been silent for 4m 00s: remote job-stacks --" + who);
  job.hung = Hung{.at = instant(1795333800), .stood = std::chrono::seconds(120), .moved_at = {}};
  const auto data = report_json(report, "p", true);
  EXPECT_THAT(data["problems"][0].get<std::string>(), StartsWith(who + " has made no progress since "));
  EXPECT_THAT(data["problems"][0].get<std::string>(), EndsWith(": remote job-why --" + who));
  EXPECT_THAT(data["headline"].get<std::string>(), HasSubstr("hung: no progress since"));
}

TEST(ReportPage, WhatGoesWellHasNoCause) {
  const auto data = report_json(report_of(JobState::running), "p", true);
  EXPECT_TRUE(data["cause"].is_null());
  EXPECT_EQ(data["look"], "busy");
  EXPECT_EQ(data["watch"], true);
  EXPECT_EQ(data["problems"][0], "node-2: cannot <b>ask</b>: it is silent");
  EXPECT_EQ(data["errors"][0]["server"], "node-2");
  EXPECT_EQ(data["errors"][0]["error"], data["problems"][0]);
  EXPECT_EQ(data["errors"][0]["cause"], "other");
}

}  // namespace
}  // namespace remote::cli
