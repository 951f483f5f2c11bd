<#
.SYNOPSIS
Puts the guardhook executable on this machine, updates it, or takes it away. Needs no administrator.

.DESCRIPTION
install.ps1 [-From FILE | -Url URL | -Build] [-Sha256 HEX] [-Prefix DIR]
install.ps1 -Remove [-Prefix DIR]

Without a source: guardhook.exe beside this script, else ..\dist\guardhook.exe, else it is built from this source tree.
The file's SHA-256 must be the one given with -Sha256, or stand in a file SHA256SUMS beside it.
#>
[CmdletBinding()]
param(
    [string] $From,
    [string] $Url,
    [switch] $Build,
    [string] $Sha256,
    [string] $Prefix,
    [switch] $Remove
)
Set-StrictMode -Version 2
$ErrorActionPreference = 'Stop'

function Say([string] $Text) { [Console]::Error.WriteLine("guardhook install: $Text") }
function Die([string] $Text) { Say $Text; exit 1 }

if (-not $Prefix) {
    if (-not $env:LOCALAPPDATA) { Die 'LOCALAPPDATA is not set; say where with -Prefix DIR' }
    $Prefix = Join-Path $env:LOCALAPPDATA 'Programs\guardhook'
}
if ($Build -and ($From -or $Url)) { Die '-Build goes with neither -From nor -Url' }
if ($From -and $Url) { Die '-From and -Url exclude one another' }
$bin = Join-Path $Prefix 'bin'
$target = Join-Path $bin 'guardhook.exe'

if ($Remove) {
    if (-not (Test-Path -LiteralPath $target)) { Die "there is no $target" }
    # Harnesses would go on calling a hook that is being removed: take the registrations out first.
    & $target uninstall --all
    if ($LASTEXITCODE -ne 0) { Die "the harnesses could not be unregistered; nothing was removed (try: $target uninstall --all)" }
    Remove-Item -LiteralPath $target -Force
    Say "removed $target; recorded sessions were kept"
    exit 0
}

$work = Join-Path ([IO.Path]::GetTempPath()) ('guardhook-' + [Guid]::NewGuid().ToString('N'))
New-Item -ItemType Directory -Path $work | Out-Null
try {
    if ($Url) {
        if (-not $Sha256) { Die '-Url needs -Sha256: what comes from elsewhere is checked against what you know' }
        if (-not $Url.StartsWith('https://')) { Die 'only https:// addresses are fetched' }
        $From = Join-Path $work 'guardhook.exe'
        Invoke-WebRequest -Uri $Url -OutFile $From -UseBasicParsing
    } elseif (-not $From -and -not $Build) {
        foreach ($candidate in @((Join-Path $PSScriptRoot 'guardhook.exe'), (Join-Path $PSScriptRoot '..\dist\guardhook.exe'))) {
            if (Test-Path -LiteralPath $candidate) { $From = $candidate; break }
        }
        if (-not $From) { $Build = $true }
    }
    if ($Build) {
        $release = Join-Path $PSScriptRoot '..\build\release.py'
        if (-not (Test-Path -LiteralPath $release)) { Die 'there is nothing to install: no executable beside this script, and no source tree' }
        Say 'building from source'
        & python $release --out (Join-Path $work 'dist')
        if ($LASTEXITCODE -ne 0) { Die 'the build failed' }
        $From = Join-Path $work 'dist\guardhook.exe'
    }
    if (-not (Test-Path -LiteralPath $From)) { Die "there is no file $From" }

    # Everything from here on is about one private copy: what was checked is what is installed.
    $checked = Join-Path $work 'checked.exe'
    Copy-Item -LiteralPath $From -Destination $checked
    if (-not $Sha256) {
        $sums = Join-Path (Split-Path -Parent $From) 'SHA256SUMS'
        if (-not (Test-Path -LiteralPath $sums)) { Die "there is no SHA256SUMS beside $From; give the expected hash with -Sha256" }
        $name = Split-Path -Leaf $From
        foreach ($line in Get-Content -LiteralPath $sums) {
            $parts = $line -split '\s+', 2
            if ($parts.Count -eq 2 -and $parts[1].TrimStart('*') -eq $name) { $Sha256 = $parts[0]; break }
        }
        if (-not $Sha256) { Die "$sums says nothing about $name" }
    }
    $found = (Get-FileHash -LiteralPath $checked -Algorithm SHA256).Hash
    if ($found -ne $Sha256.ToUpperInvariant()) { Die "SHA-256 of $From is $found, expected ${Sha256}: not installed" }
    $version = & $checked --version
    if ($LASTEXITCODE -ne 0) { Die "$From does not run on this machine" }

    New-Item -ItemType Directory -Force -Path $bin | Out-Null
    if ((Test-Path -LiteralPath $target) -and (Get-FileHash -LiteralPath $target -Algorithm SHA256).Hash -eq $found) {
        Say "$target is up to date ($version)"
    } else {
        # A running program can't be overwritten but can be renamed.
        $old = "$target.old"
        if (Test-Path -LiteralPath $old) { Remove-Item -LiteralPath $old -Force -ErrorAction SilentlyContinue }
        if (Test-Path -LiteralPath $target) { Move-Item -LiteralPath $target -Destination $old -Force }
        Move-Item -LiteralPath $checked -Destination $target
        Say "$target is in place ($version)"
    }
    if (-not (($env:PATH -split ';') -contains $bin)) { Say "$bin is not in PATH" }
    Say 'next: guardhook install claude-code (or codex, gemini); after an update run it again'
} finally {
    Remove-Item -LiteralPath $work -Recurse -Force -ErrorAction SilentlyContinue
}
