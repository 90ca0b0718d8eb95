#include "project/prepared_check.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cli/context.hpp"

namespace remote::project {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

class PreparedCheckTest : public ::testing::Test {
 protected:
  // Returns the error and hint for a server with this answer; "" if there is none.
  std::string judge(const wire::FactsReply& answer, bool is_gone = false) {
    const config::Config config = config::parse(
        "name: proj\npython: {manager: " + manager + "}\nservers:\n  a: {hostname: h1}\n", "/home/me/proj");
    std::vector<Error> errors;
    PreparedCheck(config, command, {}, std::nullopt)
        .judge(answer, config.servers.at(0), is_gone, warnings, errors);
    EXPECT_LE(errors.size(), 1U);
    return errors.empty() ? "" : errors[0].message() + " | " + cli::hint_of(errors[0]);
  }

  std::string manager = "venv";
  std::string command = "python3 train.py";
  std::vector<CheckWarned> warnings;
};

TEST_F(PreparedCheckTest, PrepareMakesAMissingPythonOnlyInAnEnvironment) {
  wire::FactsReply answer;
  answer.missing = "python3";
  EXPECT_THAT(judge(answer),
              AllOf(HasSubstr("there is no program 'python3'"), HasSubstr("`remote prepare` makes it")));
  manager = "system";
  EXPECT_THAT(judge(answer), AllOf(HasSubstr("there is no program 'python3'"),
                                   HasSubstr("`remote prepare` finds one there"), Not(HasSubstr("makes"))));
}

// As on a reinstalled machine.
TEST_F(PreparedCheckTest, AProjectThatIsGoneIsTheOnlyError) {
  wire::FactsReply answer;
  answer.missing = "python3";
  answer.lacks_environment = answer.has_old_packages = true;
  EXPECT_THAT(
      judge(answer, true),
      AllOf(HasSubstr("a: it cannot run there: the project was sent there from here, but its files are gone"),
            HasSubstr("remote prepare")));
  EXPECT_THAT(warnings, IsEmpty());
}

TEST_F(PreparedCheckTest, AMissingEnvironmentStopsCommandsThatBeginWithPython) {
  wire::FactsReply answer;
  answer.lacks_environment = true;
  EXPECT_THAT(judge(answer), HasSubstr("with its packages, is not there"));
  EXPECT_THAT(warnings, IsEmpty());
  command = "bash train.sh";
  EXPECT_EQ(judge(answer), "");
  ASSERT_EQ(warnings.size(), 1U);
  EXPECT_EQ(warnings[0].finding.name, "environment");
}

}  // namespace
}  // namespace remote::project
